package journal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heirlock/heirlock/journal"
)

type event struct {
	N    int    `json:"n"`
	Text string `json:"text,omitempty"`
}

var background = context.Background()

// small are bounds with which everything happens soon.
func small() journal.Options[event] {
	return journal.Options[event]{MaxEventBytes: 256, MaxPendingItems: 1000, MaxPendingBytes: 1 << 20, MaxFileBytes: 4096, MaxFiles: 3}
}

func open(t testing.TB, path string, opts journal.Options[event]) *journal.Journal[event] {
	t.Helper()
	j, err := journal.Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close(background) })
	return j
}

func content(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// names are the files beside a path, the lock aside.
func names(t testing.TB, path string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if e.Name() != filepath.Base(path)+".lock" {
			out = append(out, e.Name())
		}
	}
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSubmitFlushClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := open(t, path, small())
	for n := range 3 {
		r, err := j.Submit(event{N: n, Text: "<&>"})
		must(t, err)
		if r.Sequence != uint64(n+1) || r.Bytes != len(j.Status().Epoch)+len(`{"schemaVersion":1,"epoch":"","sequence":1,"event":{"n":0,"text":"<&>"}}`)+1 {
			t.Errorf("receipt %+v", r)
		}
	}
	must(t, j.Flush(background))
	var want strings.Builder
	for n := range 3 {
		fmt.Fprintf(&want, `{"schemaVersion":1,"epoch":"%s","sequence":%d,"event":{"n":%d,"text":"<&>"}}`+"\n", j.Status().Epoch, n+1, n)
	}
	if got := content(t, path); got != want.String() {
		t.Errorf("the file holds\n%swant\n%s", got, &want)
	}
	must(t, j.Sync(background))
	must(t, j.Close(background))
	must(t, j.Close(background))
	if s := j.Status(); s.State != "closed" || s.Written != 3 || s.CurrentBytes != int64(want.Len()) || s.RetainedFiles != 1 {
		t.Errorf("status %v", j)
	}
	if got := names(t, path); len(got) != 1 {
		t.Errorf("left behind: %q", got)
	}
}

// What is retained is the last of what was written, and a file is left only where the next frame did not fit.
func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := open(t, path, small())
	for n := range 500 {
		_, err := j.SubmitWait(background, event{N: n, Text: strings.Repeat("x", n%100)})
		must(t, err)
	}
	must(t, j.Close(background))
	got, odd := sequences(t, path+".2", path+".1", path)
	if s := j.Status(); s.Written != 500 || s.RetainedFiles != 3 || s.Rotations < 10 || len(got) == 0 || got[len(got)-1] != 500 || odd > 0 {
		t.Fatalf("frames %d, %d anomalies, %v", got, odd, j)
	}
	for i, n := range got {
		if n != got[0]+uint64(i) {
			t.Errorf("frame %d is %d, the first %d", i, n, got[0])
		}
	}
	for _, n := range []string{".2", ".1"} {
		if size := len(content(t, path+n)); size > 4096 || size < 4096-250 {
			t.Errorf("%s has %d bytes", n, size)
		}
	}
	if left := names(t, path); len(left) != 3 {
		t.Errorf("the directory holds %q", left)
	}
}

// Many submit, flush, sync and close at once. What each confirmed is there.
func TestManyAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	opts := small()
	opts.MaxPendingItems, opts.MaxFiles, opts.MaxFileBytes = 8, 50, 10_000
	j := open(t, path, opts)
	var wg sync.WaitGroup
	for who := range 8 {
		wg.Go(func() {
			for n := range 100 {
				_, err := j.SubmitWait(background, event{N: who, Text: "x"})
				if err == nil && n%10 == who {
					err = j.Flush(background)
				}
				if err == nil && n == 50+who {
					err = j.Sync(background)
				}
				if err != nil {
					t.Error(err)
				}
				_, err = j.Submit(event{N: 100 + who})
				if err != nil && !errors.Is(err, journal.ErrItemCapacity) {
					t.Error(err)
				}
				if s := j.Status(); s.Received != s.Accepted+s.Refused || s.Accepted != s.Written+s.Failed+uint64(s.PendingItems) ||
					s.PendingItems > 8 || s.InFlight > s.PendingItems {
					t.Errorf("the counts do not add up: %+v", s)
				}
			}
		})
	}
	wg.Wait()
	for range 4 {
		wg.Go(func() {
			if err := j.Close(background); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, err := j.Submit(event{}); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("behind the close: %v", err)
	}
	if err := j.Sync(background); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("sync behind the close: %v", err)
	}
	must(t, j.Flush(background))
	files, err := journal.Files(path)
	must(t, err)
	got, odd := sequences(t, files...)
	s := j.Status()
	if odd > 0 || uint64(len(got)) != s.Written || s.Written != s.Accepted || s.Received != 1601 || s.Refused != s.RefusalsByReason.ItemCapacity+1 {
		t.Errorf("%d frames, %d anomalies: %v", len(got), odd, j)
	}
}

// A journal leaves nothing behind in the process, whether it is closed or has failed.
func TestNoLeak(t *testing.T) {
	dir := t.TempDir()
	working := func() string {
		var found []string
		buf := make([]byte, 1<<20)
		for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(stack, "journal.(*writer)") || strings.Contains(stack, "heirlock.(*vigil)") {
				found = append(found, stack)
			}
		}
		return strings.Join(found, "\n\n")
	}
	for n := range 20 {
		path := filepath.Join(dir, fmt.Sprint("j", n))
		j := open(t, path, small())
		_, err := j.Submit(event{})
		must(t, err)
		if n%2 == 0 {
			must(t, os.Remove(path+".lock"))
		}
		if err := j.Close(background); (err != nil) != (n%2 == 0) {
			t.Errorf("close: %v", err)
		}
	}
	for deadline := time.Now().Add(time.Minute); working() != ""; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still at work:\n%s", working())
		}
	}
}

// An event costs at most one allocation, whatever it is.
func TestAllocations(t *testing.T) {
	if testing.Short() {
		t.Skip("the pool of a race build forgets on purpose")
	}
	path := filepath.Join(t.TempDir(), "j")
	j, err := journal.Open(path, journal.Options[request]{
		MaxEventBytes: 1 << 10, MaxPendingItems: 1 << 20, MaxPendingBytes: 64 << 20, MaxFileBytes: 1 << 20, MaxFiles: 2,
	})
	must(t, err)
	defer j.Close(background)
	e := *aRequest(0)
	if n := testing.AllocsPerRun(5000, func() {
		if _, err := j.Submit(e); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("%v allocations for each event", n)
	}
}
