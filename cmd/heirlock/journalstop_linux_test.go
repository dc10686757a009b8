package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heirlock/heirlock/journal"
)

// Writers take turns at one pipe, each until SIGTERM. What one has read it has written; what it has not read, the next one
// does. Only a line that is cut between two is in neither, and the first one says so.
//
//	pipe    ══1══2══3══4══5══6══7══8══9══ …
//	writer  ├──────── TERM ├────── TERM ├─ …
func TestNothingOfThePipeIsLost(t *testing.T) {
	const writers = 12
	bin, path := buildHere(t), filepath.Join(t.TempDir(), "x")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	last, fed := make(chan struct{}), make(chan int)
	go feed(w, last, fed)
	dropped := 0
	for i := range writers {
		before := retained(path)
		var said bytes.Buffer
		cmd := exec.Command(bin, "journal", "write", "--raw", "--max-files", "500", "--max-file-bytes", "1MiB", path)
		cmd.Stdin, cmd.Stderr = r, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); retained(path) < before+(1+int64(i))*20000; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("writer %d writes nothing within a minute", i)
			}
		}
		if i == writers-1 {
			close(last)
		} else if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("writer %d: %v\n%s", i, err, &said)
		}
		dropped += len(regexp.MustCompile(`(?m)^heirlock: line [0-9]+ dropped: it had not ended$`).FindAllString(said.String(), -1))
	}
	if dropped > writers {
		t.Errorf("%d lines were cut by %d writers", dropped, writers)
	}
	if cut := account(t, path, <-fed); cut != dropped {
		t.Errorf("%d lines are cut, and %d were named", cut, dropped)
	}
}

func fedLine(n int) string { return fmt.Sprintf("<%0*d>", 10+n%50, n) }

// feed writes numbered lines until it is the turn of the last reader, and then says how many there were.
func feed(w *os.File, last <-chan struct{}, fed chan<- int) {
	n := 0
	for done := false; !done; {
		var some bytes.Buffer
		for range 100 {
			some.WriteString(fedLine(n) + "\n")
			n++
		}
		w.Write(some.Bytes())
		select {
		case <-last:
			done = true
		default:
		}
	}
	w.Close()
	fed <- n
}

// retained is how much a journal holds.
func retained(path string) (bytes int64) {
	files, err := journal.Files(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		panic(err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

// account finds every line in the journal, and counts those of which there is only an end.
func account(t *testing.T, path string, fed int) (cut int) {
	t.Helper()
	next := 0
	type event struct {
		Line string `json:"line"`
	}
	for rec, err := range journal.Read(t.Context(), []string{path}, journal.ReadOptions[event]{Generations: true}) {
		if err != nil || rec.Anomaly != nil || rec.Gap != nil {
			t.Fatalf("%v, %v, %v", err, rec.Anomaly, rec.Gap)
		}
		want := fedLine(next)
		if !strings.HasSuffix(want, rec.Event.Line) {
			t.Fatalf("%q where %q, or its end, should be", rec.Event.Line, want)
		}
		if rec.Event.Line != want {
			cut++
		}
		next++
	}
	if next != fed {
		t.Errorf("%d lines of %d", next, fed)
	}
	return cut
}
