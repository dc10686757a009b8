package journal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

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

func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := open(t, path, small())
	for n := range 500 {
		_, err := j.SubmitWait(background, event{N: n, Text: strings.Repeat("x", n%100)})
		must(t, err)
	}
	must(t, j.Close(background))
	fmt.Println(j, names(t, path))
	files, err := journal.Files(path)
	must(t, err)
	fmt.Println(journal.Verify(background, files, journal.ReadOptions[jsontext.Value]{}))
}
