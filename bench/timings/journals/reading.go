package journals

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/heirlock/heirlock/bench/timings/account"
	"github.com/heirlock/heirlock/journal"
)

// filled is a journal that was given so many bytes and closed.
func filled(dir string, detail, files int, fileBytes, bytes int64) (string, error) {
	path := filepath.Join(dir, "log")
	j, err := journal.Open(path, journal.Options[event]{
		MaxEventBytes: 64 << 10, MaxPendingItems: 1 << 16, MaxPendingBytes: 16 << 20, MaxFileBytes: fileBytes, MaxFiles: files,
	})
	if err != nil {
		return "", err
	}
	e := newEvent(detail)
	for written := int64(0); written < bytes; {
		r, err := j.SubmitWait(context.Background(), e)
		if err != nil {
			return "", err
		}
		written += int64(r.Bytes)
	}
	return path, j.Close(context.Background())
}

// lines is what checking the same lines costs when they lie in memory already: split, and jsontext's own strict check.
func lines(text []byte) error {
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte{'\n'})
		if !jsontext.Value(line).IsValid() {
			return fmt.Errorf("invalid: %.80s", line)
		}
		text = rest
	}
	return nil
}

func readAll(path string) error {
	for r, err := range journal.Read(context.Background(), []string{path}, journal.ReadOptions[jsontext.Value]{}) {
		if err != nil {
			return err
		}
		if r.Anomaly != nil || r.Gap != nil {
			return errors.New("the journal is damaged")
		}
	}
	return nil
}

func verifyAll(paths ...string) error {
	report, err := journal.Verify(context.Background(), paths, journal.ReadOptions[jsontext.Value]{})
	if err == nil && (report.Frames == 0 || report.Anomalies+report.Gaps > 0) {
		text, _ := json.Marshal(report)
		err = fmt.Errorf("the journal is damaged: %s", text)
	}
	return err
}

// timed is how long a call takes on so many processors.
func timed(processors int, do func() error) (float64, error) {
	before := runtime.GOMAXPROCS(processors)
	defer runtime.GOMAXPROCS(before)
	runtime.GC()
	began := time.Now()
	err := do()
	return float64(time.Since(began)), err
}

// Read is the speed of Read on one processor and of Verify on two, against jsontext.Value.IsValid over the same lines.
func Read(dir string, rounds int) error {
	s := account.Section{
		Title:   "reading one file of 48 MiB that the kernel has in memory",
		Columns: []string{"frames around", "", "MB/s", "× IsValid"},
		Below:   "IsValid is jsontext's, strict, over the same lines when they lie in memory already, on one processor; Read runs on one, Verify on two.",
	}
	for _, size := range []struct {
		name   string
		detail int
	}{{"200 B", 0}, {"2 KiB", 1850}} {
		at := filepath.Join(dir, size.name)
		if err := os.Mkdir(at, 0o700); err != nil {
			return err
		}
		took, length, err := readRounds(at, size.detail, rounds)
		if err != nil {
			return err
		}
		for _, name := range []string{"IsValid", "Read", "Verify"} {
			s.Rows = append(s.Rows, []string{size.name, name,
				fmt.Sprintf("%.0f", length/account.Median(took[name])*1e3), fmt.Sprintf("%.2f", account.Ratio(took, "IsValid", name))})
		}
		account.Goal("read, "+size.name+": Read on one processor, × IsValid", account.Ratio(took, "IsValid", "Read"), "≥", 0.9)
		if size.detail == 0 {
			account.Goal("read, "+size.name+": Verify on two processors, × IsValid on one", account.Ratio(took, "IsValid", "Verify"), "≥", 1.6)
		}
	}
	account.Show(s)
	return nil
}

// readRounds returns the times of each round, and the length of what was read.
func readRounds(dir string, detail, rounds int) (map[string][]float64, float64, error) {
	path, err := filled(dir, detail, 1, 64<<20, 48<<20)
	if err != nil {
		return nil, 0, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, err
	}
	ways := []struct {
		name       string
		processors int
		do         func() error
	}{
		{"IsValid", 1, func() error { return lines(text) }},
		{"Read", 1, func() error { return readAll(path) }},
		{"Verify", 2, func() error { return verifyAll(path) }},
	}
	took := map[string][]float64{}
	for round := range rounds {
		for i := range ways {
			w := ways[(i+round)%len(ways)]
			v, err := timed(w.processors, w.do)
			if err != nil {
				return nil, 0, fmt.Errorf("%s: %w", w.name, err)
			}
			took[w.name] = append(took[w.name], v)
		}
	}
	return took, float64(len(text)), nil
}
