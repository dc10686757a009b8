package main

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

	"github.com/heirlock/heirlock/journal"
)

// filled is a journal of so many files of so many bytes each, closed.
func filled(dir string, detail, files int, fileBytes int64) (string, error) {
	path := filepath.Join(dir, "log")
	j, err := journal.Open(path, journal.Options[event]{
		MaxEventBytes: 64 << 10, MaxPendingItems: 1 << 16, MaxPendingBytes: 16 << 20, MaxFileBytes: fileBytes, MaxFiles: files,
	})
	if err != nil {
		return "", err
	}
	e := newEvent(detail)
	for written := int64(0); written < int64(files)*fileBytes-fileBytes/4; {
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

// reading is the speed of Read on one processor and of Verify on two, against jsontext.Value.IsValid over the same lines.
func reading(dir string, rounds int) error {
	for _, size := range []struct {
		name   string
		detail int
	}{{"200 B", 0}, {"2 KiB", 1850}} {
		at := filepath.Join(dir, size.name)
		if err := os.Mkdir(at, 0o700); err != nil {
			return err
		}
		path, err := filled(at, size.detail, 1, 64<<20)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		took := map[string][]float64{}
		for range rounds {
			for _, m := range []struct {
				name       string
				processors int
				do         func() error
			}{
				{"IsValid", 1, func() error { return lines(text) }},
				{"Read", 1, func() error { return readAll(path) }},
				{"Verify", 2, func() error { return verifyAll(path) }},
			} {
				v, err := timed(m.processors, m.do)
				if err != nil {
					return fmt.Errorf("%s: %w", m.name, err)
				}
				took[m.name] = append(took[m.name], v)
			}
		}
		for _, name := range []string{"IsValid", "Read", "Verify"} {
			fmt.Printf("read    %-6s %-8s %6.0f MB/s\n", size.name, name, float64(len(text))/median(took[name])*1e3)
		}
		atLeast("read, "+size.name+": Read on one core, × IsValid", ratio(took, "IsValid", "Read"), 0.9)
		if size.detail == 0 {
			atLeast("read, "+size.name+": Verify on two cores, × IsValid on one", ratio(took, "IsValid", "Verify"), 1.6)
		}
	}
	return nil
}

// opening is the time to open a journal with 8 files of 64 MiB, against Verify over the same files.
func opening(dir string, rounds int) error {
	path, err := filled(dir, 0, 8, 64<<20)
	if err != nil {
		return err
	}
	files, err := journal.Files(path)
	if err != nil {
		return err
	}
	took := map[string][]float64{}
	for range rounds {
		v, err := timed(runtime.NumCPU(), func() error { return verifyAll(files...) })
		if err != nil {
			return err
		}
		var j *journal.Journal[event]
		o, err := timed(runtime.NumCPU(), func() (err error) {
			j, err = journal.Open(path, journal.Options[event]{
				MaxEventBytes: 64 << 10, MaxPendingItems: 1 << 16, MaxPendingBytes: 16 << 20, MaxFileBytes: 64 << 20, MaxFiles: 8,
			})
			return err
		})
		if err != nil {
			return err
		}
		if s := j.Status(); s.Recovery.Files != len(files) || s.Recovery.Anomalies > 0 {
			return fmt.Errorf("opened: %s", j)
		}
		if err := j.Close(context.Background()); err != nil {
			return err
		}
		took["Verify"], took["Open"] = append(took["Verify"], v), append(took["Open"], o)
	}
	fmt.Printf("open    %d files: Open %.0f ms, Verify %.0f ms\n", len(files), median(took["Open"])/1e6, median(took["Verify"])/1e6)
	atMost("open of 8 × 64 MiB: ÷ Verify", ratio(took, "Open", "Verify"), 1.2)
	return nil
}
