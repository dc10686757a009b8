package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/heirlock/heirlock"
	"github.com/heirlock/heirlock/journal"
)

// sequences reads what a file holds of our epoch: the sequences, and what else is there.
func sequences(t testing.TB, files ...string) (sequences []uint64, anomalies int) {
	t.Helper()
	for rec, err := range journal.Read(background, files, journal.ReadOptions[jsontext.Value]{}) {
		must(t, err)
		switch {
		case rec.Anomaly != nil:
			anomalies++
		case rec.Gap == nil:
			sequences = append(sequences, rec.Sequence)
		}
	}
	return sequences, anomalies
}

func submit(t testing.TB, j *journal.Journal[event], n int) {
	t.Helper()
	for i := range n {
		_, err := j.Submit(event{N: i})
		must(t, err)
	}
	must(t, j.Flush(background))
}

// Somebody renames, removes or replaces the active file: noticed before the next frames, counted, and a new file is
// begun at the path. Nothing that lies there instead is followed, lost or written to.
func TestDisplaced(t *testing.T) {
	for _, c := range []struct {
		name    string
		do      func(path string) error
		victim  string // what must hold "victim" still, beside the path
		adopted bool
	}{
		{name: "renamed", do: func(path string) error { return os.Rename(path, path+"-20261130") }},
		{name: "removed", do: os.Remove},
		{name: "replaced by a file", do: func(path string) error {
			if err := os.WriteFile(path+"-new", []byte("victim"), 0o644); err != nil {
				return err
			}
			return os.Rename(path+"-new", path)
		}, victim: "j.quarantined-*"},
		{name: "replaced by a symlink", do: func(path string) error {
			if err := os.WriteFile(path+"-victim", []byte("victim"), 0o644); err != nil {
				return err
			}
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Symlink(path+"-victim", path)
		}, victim: "j-victim"},
		{name: "replaced by a dangling symlink", do: func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Symlink(path+"-nothing", path)
		}},
		{name: "replaced by a directory", do: func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			if err := os.Mkdir(path, 0o700); err != nil {
				return err
			}
			return os.WriteFile(path+"/file", []byte("victim"), 0o600)
		}, victim: "j.quarantined-*/file"},
		{name: "replaced by an empty file, as logrotate does", do: func(path string) error {
			if err := os.Rename(path, path+"-20261130"); err != nil {
				return err
			}
			return os.WriteFile(path, nil, 0o640)
		}, adopted: true},
		{name: "replaced by an empty file that has two names", do: func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			if err := os.WriteFile(path, nil, 0o640); err != nil {
				return err
			}
			return os.Link(path, path+"-other")
		}},
	} {
		for _, files := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s, %d files", c.name, files), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "j")
				opts := small()
				opts.MaxFiles = files
				j := open(t, path, opts)
				submit(t, j, 3)
				must(t, c.do(path))
				var there os.FileInfo
				if c.adopted {
					var err error
					there, err = os.Stat(path)
					must(t, err)
				}
				submit(t, j, 2)
				must(t, j.Sync(background))
				if got, odd := sequences(t, path); !slices.Equal(got, []uint64{4, 5}) || odd > 0 {
					t.Errorf("the new file has frames %d and %d anomalies; want 4 and 5", got, odd)
				}
				st, err := os.Lstat(path)
				must(t, err)
				mode := os.FileMode(0o600)
				if c.adopted {
					if mode = 0o640; !os.SameFile(st, there) {
						t.Error("the empty file was not taken")
					}
				}
				if st.Mode() != mode {
					t.Errorf("mode %v, want %v", st.Mode(), mode)
				}
				if s := j.Status(); s.Displaced != 1 || s.Truncated != 0 || s.Rotations != 0 || s.State != "open" ||
					s.CurrentBytes != st.Size() || s.RetainedFiles != 1 {
					t.Errorf("status %v", j)
				}
				if c.victim != "" {
					found, err := filepath.Glob(filepath.Join(filepath.Dir(path), c.victim))
					must(t, err)
					if len(found) != 1 || content(t, found[0]) != "victim" {
						t.Errorf("the victim is %q", found)
					}
				}
				if _, err := os.Lstat(path + "-nothing"); err == nil {
					t.Error("a link was followed")
				}
				must(t, j.Close(background))
				must(t, open(t, path, opts).Close(background))
			})
		}
	}
}

// Files that somebody else made of the active one are counted as Files lists them, those beyond the bound too.
func TestForeignRotation(t *testing.T) {
	for _, c := range []struct {
		to    string
		empty bool
	}{{".1", true}, {".1", false}, {".2", true}, {".7", true}, {"-old", true}} {
		t.Run(fmt.Sprintf("to %s, %v", c.to, c.empty), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "j")
			must(t, os.WriteFile(path+".2024", []byte("a year\n"), 0o600))
			j := open(t, path, small())
			for range 3 {
				submit(t, j, 3)
				must(t, os.Rename(path, path+c.to))
				if c.empty {
					must(t, os.WriteFile(path, nil, 0o600))
				}
				submit(t, j, 2)
				files, err := journal.Files(path)
				must(t, err)
				if s := j.Status(); s.RetainedFiles != len(files) || s.State != "open" { // both without the year
					t.Errorf("%q: status %v", files, j)
				}
			}
		})
	}
}

// Somebody cuts the active file, as copytruncate does, or writes to it: noticed, and frames go on at its real end, with
// no hole. If that is within a line, in a new file.
func TestTruncated(t *testing.T) {
	frame := len(`{"schemaVersion":1,"epoch":"0198f2c4-7b1a-4c3e-9a55-3f1d2b6c8e90","sequence":1,"event":{"n":0}}`) + 1
	write := func(text string) func(path string) error {
		return func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString(text)
			return err
		}
	}
	cut := func(size int) func(path string) error {
		return func(path string) error { return os.Truncate(path, int64(size)) }
	}
	for _, c := range []struct {
		name      string
		do        func(path string) error
		here      []uint64 // in the active file afterwards
		kept      bool     // what was there is elsewhere
		truncated uint64
	}{
		{"to nothing", cut(0), []uint64{4, 5}, false, 1},
		{"behind a frame", cut(frame), []uint64{1, 4, 5}, false, 1},
		{"within a frame", cut(frame + 5), []uint64{4, 5}, true, 1},
		{"its last byte overwritten", func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteAt([]byte("x"), int64(3*frame)-1)
			return err
		}, []uint64{4, 5}, true, 0},
		{"written to, a whole line", write("a line\n"), []uint64{1, 2, 3, 4, 5}, false, 0},
		{"written to, half a line", write("half"), []uint64{4, 5}, true, 0},
	} {
		for _, files := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s, %d files", c.name, files), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "j")
				opts := small()
				opts.MaxFiles = files
				j := open(t, path, opts)
				submit(t, j, 3)
				must(t, c.do(path))
				before := content(t, path)
				submit(t, j, 2)
				after := content(t, path)
				if got, _ := sequences(t, path); !slices.Equal(got, c.here) || strings.Contains(after, "\x00") {
					t.Errorf("the file has frames %d, want %d: %q", got, c.here, after)
				}
				elsewhere := path + ".1"
				if files == 1 {
					elsewhere = path + ".quarantined-*"
				}
				found, err := filepath.Glob(elsewhere)
				must(t, err)
				if c.kept && (len(found) != 1 || content(t, found[0]) != before) || !c.kept && (len(found) > 0 || !strings.HasPrefix(after, before)) {
					t.Errorf("what was there is in %q, and the file holds %q", found, after)
				}
				if s := j.Status(); s.Truncated != c.truncated || s.Displaced != 0 || s.CurrentBytes != int64(len(after)) || s.State != "open" {
					t.Errorf("status %v", j)
				}
			})
		}
	}
}

// The lock is removed or replaced: not one frame more, at once.
func TestLockLost(t *testing.T) {
	for name, do := range map[string]func(lock string) error{
		"removed": os.Remove,
		"replaced": func(lock string) error {
			if err := os.WriteFile(lock+"-new", []byte("{}\n"), 0o600); err != nil {
				return err
			}
			return os.Rename(lock+"-new", lock)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "j")
			opts := small()
			told := make(chan error, 2)
			opts.OnFailure = func(err error) {
				told <- err
				panic("harms nobody")
			}
			j := open(t, path, opts)
			submit(t, j, 2)
			before := content(t, path)
			must(t, do(path+".lock"))
			_, submitted := j.Submit(event{}) // the journal may know already
			err := <-told
			if !isAll(err, heirlock.ErrLost) {
				t.Errorf("told %v", err)
			}
			flushed, closed := j.Flush(background), j.Close(background)
			if !isAll(closed, journal.ErrFailed, heirlock.ErrLost) || submitted == nil && !isAll(flushed, journal.ErrFailed, heirlock.ErrLost) {
				t.Errorf("flush %v, close %v", flushed, closed)
			}
			if _, err := j.Submit(event{}); !isAll(err, journal.ErrFailed, heirlock.ErrLost) {
				t.Errorf("submit: %v", err)
			}
			s := j.Status()
			if s.State != "failed" || s.LastFailure.Phase != "lock" || s.Written != 2 || s.Accepted != s.Written+s.Failed || s.PendingItems != 0 {
				t.Errorf("status %v", j)
			}
			if content(t, path) != before {
				t.Error("a frame was written without the lock")
			}
			if _, err := os.Stat(path + ".lock"); (err == nil) != (name == "replaced") {
				t.Errorf("the lock: %v", err)
			}
			select {
			case err := <-told:
				t.Errorf("told again: %v", err)
			default:
			}
		})
	}
}

// An idle journal learns of it too.
func TestLockLostWhileIdle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	opts := small()
	told := make(chan error, 1)
	opts.OnFailure = func(err error) { told <- err }
	j := open(t, path, opts)
	must(t, os.Remove(path+".lock"))
	if err := <-told; !isAll(err, heirlock.ErrLost) {
		t.Errorf("told %v", err)
	}
	if s := j.Status(); s.State != "failed" || s.LastFailure.Sequence != 0 {
		t.Errorf("status %v", j)
	}
}

// A second path to the file gets no second writer; a file with a second link is never appended to.
func TestSecondPath(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "j"), filepath.Join(dir, "other")
	j := open(t, path, small())
	submit(t, j, 1)
	must(t, os.Link(path, other))
	if _, err := journal.Open(other, small()); !errors.Is(err, heirlock.ErrHeld) || !strings.Contains(err.Error(), "another writer") {
		t.Errorf("%v, want another writer", err)
	}
	if got := names(t, path); !slices.Equal(got, []string{"j", "other"}) {
		t.Errorf("left behind: %q", got)
	}
	submit(t, j, 1) // a link beside it changes nothing for who has it open
	if got, _ := sequences(t, path); len(got) != 2 {
		t.Errorf("frames %d", got)
	}
	must(t, j.Close(background))
	before := content(t, other)
	j = open(t, path, small())
	submit(t, j, 1)
	if content(t, other) != before || content(t, path+".1") != before {
		t.Error("a file with two links was appended to")
	}
	if s := j.Status(); s.Rotations != 1 || s.PartialTails != 0 || s.Recovery.Frames != 2 || s.RetainedFiles != 2 {
		t.Errorf("status %v", j)
	}
	if got, _ := sequences(t, path); !slices.Equal(got, []uint64{1}) {
		t.Errorf("frames %d", got)
	}
}
