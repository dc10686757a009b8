package journal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/heirlock/heirlock"
)

// byHand opens a journal whose writer the test drives.
func byHand(t *testing.T, path string) *Journal[item] {
	t.Helper()
	j, err := prepare(path, stormOptions(heirlock.Refuse))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		j.ledger.drain()
		j.writer.over()
		j.writer.finish()
	})
	return j
}

// An empty file that was taken is a name that came: the next sync reaches the directory.
func TestTakenFileIsSynced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := byHand(t, path)
	s := j.writer.shelf
	if err := s.sync(); err != nil || s.names {
		t.Fatalf("synced: %v, names %v", err, s.names)
	}
	if err := os.Rename(path, path+"-old"); err != nil {
		t.Fatal(err)
	}
	inFile(t, path, "")
	if _, err := j.Submit(item{}); err != nil {
		t.Fatal(err)
	}
	j.writer.drain()
	if st := j.Status(); st.Displaced != 1 || st.Written != 1 || !s.names {
		t.Errorf("names %v, status %v", s.names, j)
	}
}

// A file that was removed is not counted any more, even if no other can be begun.
func TestFailedReplacementIsCounted(t *testing.T) {
	dir := t.TempDir()
	j := byHand(t, filepath.Join(dir, "j"))
	s := j.writer.shelf
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	found, err := s.check()
	if err == nil || !found.displaced || s.retained != 0 {
		t.Errorf("found %+v, %v, %d files", found, err, s.retained)
	}
}

// What a failed write left is cut off by the size that the file really has, and the file is never made longer.
func TestCutBack(t *testing.T) {
	for _, c := range []struct {
		holds      string
		size, want int64
	}{{"0123456789", 4, 4}, {"0123456789", 10, 10}, {"012", 4, 3}, {"", 4, 0}} {
		path := filepath.Join(t.TempDir(), "j")
		j := byHand(t, path)
		s := j.writer.shelf
		inFile(t, path, c.holds)
		if err := s.cutBack(c.size); err != nil || s.size != c.want {
			t.Errorf("%q cut to %d: size %d, %v", c.holds, c.size, s.size, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != c.holds[:c.want] {
			t.Errorf("%q cut to %d: %q, %v", c.holds, c.size, got, err)
		}
	}
}
