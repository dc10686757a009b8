package journal_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/heirlock/heirlock/journal"
)

// A TypeScript program reads and writes the same files: the bytes are what it expects, and an epoch begins behind a
// complete tail in the same file.
func TestFramesAsTheOthersWriteThem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	var want string
	for range 2 {
		j := open(t, path, small())
		epoch := j.Status().Epoch
		if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(epoch) {
			t.Errorf("epoch %q is no UUID of version 4", epoch)
		}
		for n := range 2 {
			_, err := j.Submit(event{N: n, Text: "<>& é"})
			must(t, err)
			want += fmt.Sprintf("{\"schemaVersion\":1,\"epoch\":\"%s\",\"sequence\":%d,\"event\":{\"n\":%d,\"text\":\"<>& é\"}}\n", epoch, n+1, n)
		}
		must(t, j.Close(background))
	}
	if got := content(t, path); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	report, err := journal.Verify(background, []string{path}, journal.ReadOptions[jsontext.Value]{})
	must(t, err)
	if report.Epochs != 2 || report.Frames != 4 || report.Anomalies+report.Gaps != 0 {
		t.Errorf("%+v", report)
	}
}

// What is settled already wins over a context that has ended; what is not waits no longer than it.
func TestSettledWinsOverEndedContext(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "j"), small())
	why := errors.New("enough")
	ended, end := context.WithCancelCause(background)
	end(why)
	must(t, j.Flush(ended)) // nothing was accepted
	_, err := j.Submit(event{N: 1})
	must(t, err)
	if err := j.Flush(ended); err != nil && !errors.Is(err, why) {
		t.Errorf("flush of a pending frame: %v", err)
	}
	must(t, j.Flush(background))
	must(t, j.Flush(ended))
	must(t, j.Close(background))
	must(t, j.Close(ended)) // it is closed
}
