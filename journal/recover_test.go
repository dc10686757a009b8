package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heirlock/heirlock/journal"
)

func isAll(err error, targets ...error) bool {
	return !slices.ContainsFunc(targets, func(target error) bool { return !errors.Is(err, target) })
}

const oldEpoch = "0198f2c4-7b1a-4c3e-9a55-3f1d2b6c8e90"

func oldFrame(sequence int) string {
	return fmt.Sprintf(`{"schemaVersion":1,"epoch":"%s","sequence":%d,"event":{"n":1}}`+"\n", oldEpoch, sequence)
}

// A torn tail is kept as it is, in a generation, and counted; the next epoch begins a file.
func TestTornTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	torn := oldFrame(1) + oldFrame(2)[:40]
	must(t, os.WriteFile(path, []byte(torn), 0o640))
	must(t, os.Chmod(path, 0o640))
	must(t, os.WriteFile(path+".1", []byte(oldFrame(1)), 0o600))
	j := open(t, path, small())
	submit(t, j, 1)
	if content(t, path+".1") != torn || content(t, path+".2") != oldFrame(1) {
		t.Errorf("generations %q, %q", content(t, path+".1"), content(t, path+".2"))
	}
	if got, odd := sequences(t, path); !slices.Equal(got, []uint64{1}) || odd > 0 {
		t.Errorf("the new file has frames %d, %d anomalies", got, odd)
	}
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o640 {
		t.Errorf("mode %v, %v: want that of the file before", st.Mode(), err)
	}
	s := j.Status()
	if s.PartialTails != 1 || s.Rotations != 1 || s.RetainedFiles != 3 {
		t.Errorf("status %v", j)
	}
	r := s.Recovery
	if r.Files != 2 || r.Frames != 2 || r.Anomalies != 1 || r.First == nil || r.Last == nil || r.First.File != path+".1" ||
		r.First.Reason != "unterminated-line" || r.First.Offset != int64(len(oldFrame(1))) || r.First.SkippedBytes != 40 {
		t.Errorf("recovery %+v, first %+v", r, r.First)
	}
}

// With one file there is no place to keep a torn tail: an error that says so, and nothing is deleted.
func TestTornTailOfOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	must(t, os.WriteFile(path, []byte("torn"), 0o600))
	must(t, os.WriteFile(path+".1", []byte("beyond\n"), 0o600))
	opts := small()
	opts.MaxFiles = 1
	if _, err := journal.Open(path, opts); err == nil || !strings.Contains(err.Error(), "within a line") {
		t.Errorf("%v, want a torn tail", err)
	}
	if content(t, path) != "torn" || content(t, path+".1") != "beyond\n" || len(names(t, path)) != 2 {
		t.Errorf("touched: %q", names(t, path))
	}
	if _, err := os.Stat(path + ".lock"); err == nil {
		t.Error("the lock was left")
	}
}

// What is whole is appended to: one file holds two epochs. Generations beyond the bound go at open, and nothing else.
func TestAppendsAndPrunes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	must(t, os.WriteFile(path, []byte(oldFrame(1)+oldFrame(2)), 0o600))
	kept := []string{".01", ".0", ".1x", ".+3", ".quarantined-" + oldEpoch, ".20261130", "-3", ".2", "x.3", ".3.gz"}
	for _, suffix := range append(kept, ".3", ".4", ".17", ".999999") {
		must(t, os.WriteFile(path+suffix, []byte(oldFrame(1)), 0o600))
	}
	must(t, os.WriteFile(path+".18", nil, 0o600))
	must(t, os.WriteFile(path+".19", []byte(oldFrame(1)[:len(oldFrame(1))-5]), 0o600)) // torn
	must(t, os.WriteFile(path+".20", []byte(strings.Replace(oldFrame(1), "1}}", strings.Repeat("1", 300_000), 1)), 0o600))
	for suffix, text := range map[string]string{ // a year, a month, a port
		".2024": "2024-01-01 started\n", ".202411": `{"level":"info"}` + "\n", ".8080": "x", ".8081": "\n" + oldFrame(1),
		".8082": `{"schemaVersion":1,"epoch":"2024"}` + "\n", ".8083": " " + oldFrame(1), ".8084": `,"event":1` + "\n",
	} {
		must(t, os.WriteFile(path+suffix, []byte(text), 0o600))
		kept = append(kept, suffix)
	}
	j := open(t, path, small())
	submit(t, j, 1)
	if got, odd := sequences(t, path); !slices.Equal(got, []uint64{1, 2, 1}) || odd > 0 {
		t.Errorf("frames %d, %d anomalies", got, odd)
	}
	want := []string{"j"}
	for _, suffix := range kept {
		want = append(want, "j"+suffix)
	}
	slices.Sort(want)
	if got := names(t, path); !slices.Equal(got, want) {
		t.Errorf("the directory holds %q, want %q", got, want)
	}
	if s := j.Status(); s.RetainedFiles != 2 || s.Rotations != 0 || s.RemovedFiles != 7 || s.Recovery.Files != 2 {
		t.Errorf("status %v", j)
	}
}

// What was found at open is what was there before: not the file that Open makes, but an empty one that it takes.
func TestFoundAtOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	for _, want := range []int{0, 1, 1} {
		j := open(t, path, small())
		if s := j.Status(); s.Recovery.Files != want || s.RetainedFiles != 1 || s.RemovedFiles != 0 {
			t.Errorf("want %d files found: %v", want, j)
		}
		must(t, j.Close(background))
	}
	must(t, os.Rename(path, path+".1"))
	if s := open(t, path, small()).Status(); s.Recovery.Files != 1 || s.RetainedFiles != 2 {
		t.Errorf("without the active file: %+v", s)
	}
}

// Files of an older, larger bound stay until they are rotated away, and are reported. The active one is not appended to.
func TestOlderBound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	big := strings.Repeat(oldFrame(1), 100)
	must(t, os.WriteFile(path, []byte(big), 0o600))
	must(t, os.WriteFile(path+".1", []byte(big), 0o600))
	j := open(t, path, small())
	if s := j.Status(); s.OversizedFiles != 2 || s.RetainedFiles != 2 || s.CurrentBytes != int64(len(big)) {
		t.Errorf("status %v", j)
	}
	submit(t, j, 1)
	if content(t, path+".1") != big || content(t, path+".2") != big {
		t.Error("the old files were touched")
	}
	if s := j.Status(); s.OversizedFiles != 2 || s.RetainedFiles != 3 || s.Rotations != 1 || s.CurrentBytes > 4096 {
		t.Errorf("status %v", j)
	}
	for j.Status().Rotations < 3 {
		submit(t, j, 10)
	}
	if s := j.Status(); s.OversizedFiles != 0 || s.RetainedFiles != 3 {
		t.Errorf("status %v", j)
	}
}

// A gap in the numbers, as a crash between two renames leaves it, is filled before anything is removed.
func TestRotationFillsGaps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	opts := small()
	opts.MaxFiles = 5
	for _, n := range []string{"", ".1", ".3", ".4"} {
		must(t, os.WriteFile(path+n, []byte("was"+n), 0o600))
	}
	j := open(t, path, opts) // the tail is torn: it rotates
	for n, want := range map[string]string{"": "", ".1": "was", ".2": "was.1", ".3": "was.3", ".4": "was.4"} {
		if got := content(t, path+n); got != want {
			t.Errorf("j%s is %q, want %q", n, got, want)
		}
	}
	if s := j.Status(); s.RetainedFiles != 5 {
		t.Errorf("status %v", j)
	}
}

// A file may be exactly full, and a frame that would make it one byte more goes into the next.
func TestExactlyFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	opts := small()
	opts.MaxFileBytes = int64(10 * len(oldFrame(1)))
	opts.MaxEventBytes = 200
	j := open(t, path, opts)
	for range 9 {
		_, err := j.Submit(event{N: 1})
		must(t, err)
	}
	must(t, j.Flush(background))
	room := opts.MaxFileBytes - j.Status().CurrentBytes
	text := func(frame int64) string {
		head := len(oldFrame(10)) - len(`{"n":1}`)
		return strings.Repeat("x", int(frame)-head-len(`{"n":1,"text":""}`))
	}
	_, err := j.Submit(event{N: 1, Text: text(room + 40)})
	must(t, err)
	must(t, j.Flush(background))
	if s := j.Status(); s.Rotations != 1 {
		t.Errorf("40 bytes too many: %v", j)
	}
	for j.Status().CurrentBytes+int64(2*len(oldFrame(10))) < opts.MaxFileBytes {
		submit(t, j, 1)
	}
	room = opts.MaxFileBytes - j.Status().CurrentBytes
	_, err = j.Submit(event{N: 1, Text: text(room)})
	must(t, err)
	must(t, j.Flush(background))
	if s := j.Status(); s.CurrentBytes != opts.MaxFileBytes || s.Rotations != 1 {
		t.Errorf("exactly full: %v", j)
	}
	submit(t, j, 1)
	if st, err := os.Stat(path + ".1"); err != nil || st.Size() != opts.MaxFileBytes || j.Status().Rotations != 2 {
		t.Errorf("behind the full one: %v, %v", j, err)
	}
}

// A rename that was made of link and unlink, and cut short between them, is ended: no number is lost to it.
func TestRenameCutShort(t *testing.T) {
	for _, c := range []struct {
		twice string            // has a second name, with the next higher number
		want  map[string]string // afterwards
	}{
		{"", map[string]string{"": "", ".1": oldFrame(1), ".3": oldFrame(3)}},
		{".1", map[string]string{"": oldFrame(1), ".2": oldFrame(2), ".3": oldFrame(3)}},
	} {
		path := filepath.Join(t.TempDir(), "j")
		opts := small()
		opts.MaxFiles = 4
		next := ".1"
		must(t, os.WriteFile(path, []byte(oldFrame(1)), 0o600))
		if c.twice == ".1" {
			must(t, os.WriteFile(path+".1", []byte(oldFrame(2)), 0o600))
			next = ".2"
		}
		must(t, os.Link(path+c.twice, path+next))
		must(t, os.WriteFile(path+".3", []byte(oldFrame(3)), 0o600))
		j := open(t, path, opts)
		for suffix, want := range c.want {
			if got := content(t, path+suffix); got != want {
				t.Errorf("j%s: %q, want %q", suffix, got, want)
			}
		}
		if s := j.Status(); len(names(t, path)) != 3 || s.RetainedFiles != 3 || s.Rotations != 0 {
			t.Errorf("the directory holds %q: %v", names(t, path), j)
		}
	}
}
