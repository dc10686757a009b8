package heirlock_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heirlock/heirlock"
)

// A relative path means the directory that was current at the call, whatever becomes current later.
func TestOddRelativePathAndALaterChdir(t *testing.T) {
	s, elsewhere := newScene(t, t.TempDir()), t.TempDir()
	for _, path := range []string{"x.lock", "./x.lock", "../" + filepath.Base(s.dir) + "/x.lock"} {
		t.Chdir(s.dir)
		l, err := heirlock.TryAcquire(path, heirlock.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s.only("x.lock")
		t.Chdir(elsewhere)
		if err := l.Release(); err != nil || l.Path != path {
			t.Errorf("%s: %v, path %s", path, err, l.Path)
		}
		s.only()
	}
}

// "link/../x.lock" is what the kernel says it is, the parent of the link's target, not what the text looks like. A directory
// that is renamed while the lock is held changes nothing.
func TestOddParentThroughALink(t *testing.T) {
	s := newScene(t, t.TempDir())
	far := filepath.Join(s.dir, "far")
	if err := errors.Join(os.MkdirAll(filepath.Join(far, "deep"), 0o700), os.Symlink(filepath.Join(far, "deep"), filepath.Join(s.dir, "link"))); err != nil {
		t.Fatal(err)
	}
	l, err := heirlock.TryAcquire(s.dir+"/link/../x.lock", heirlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(far, "x.lock")); err != nil {
		t.Error(err)
	}
	s.only("far", "link")
	if _, err := heirlock.TryAcquire(filepath.Join(far, "x.lock"), heirlock.Options{Policy: heirlock.ReclaimStale}); !errors.Is(err, heirlock.ErrHeld) {
		t.Errorf("by its other path: %v, want a refusal", err)
	}
	moved := filepath.Join(s.dir, "moved")
	if err := errors.Join(os.Rename(far, moved), l.Release()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(moved); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A path that names no file is refused before anything is created.
func TestOddPathThatNamesNoFile(t *testing.T) {
	s := newScene(t, t.TempDir())
	t.Chdir(s.dir)
	if err := os.Mkdir("d", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", ".", "..", "d/", "d/.", "d/..", "/", s.path + "/", "d//", "x\x00.lock"} {
		var wrong *fs.PathError
		if l, err := heirlock.TryAcquire(path, heirlock.Options{}); !errors.As(err, &wrong) || wrong.Path != path || errors.Is(err, heirlock.ErrHeld) {
			t.Errorf("TryAcquire(%q): %v, %v; want a *fs.PathError", path, l, err)
		}
		if d, err := heirlock.Inspect(path, heirlock.Options{}); !errors.As(err, &wrong) {
			t.Errorf("Inspect(%q): %v, %v; want a *fs.PathError", path, d, err)
		}
		if d, err := heirlock.Reclaim(path, "", heirlock.Options{}); !errors.As(err, &wrong) {
			t.Errorf("Reclaim(%q): %v, %v; want a *fs.PathError", path, d, err)
		}
	}
	s.only("d")
}

// The longest name whose guard's name still fits, 247 bytes, can be taken and inherited; one byte more is refused before
// anything is created, not found out when it is too late.
func TestOddLongestName(t *testing.T) {
	s := newScene(t, t.TempDir())
	s.path = filepath.Join(s.dir, strings.Repeat("n", 247))
	owner := play(t, nil, "hold", s.path, "refuse")
	owner.expect("held")
	owner.kill()
	s.only(filepath.Base(s.path))
	leaveDead(t, s.guard())
	s.tidy()
	l, err := heirlock.TryAcquire(filepath.Join(s.dir, strings.Repeat("n", 248)), heirlock.Options{})
	if !errors.Is(err, syscall.ENAMETOOLONG) {
		t.Errorf("248 bytes: %v, %v; want ENAMETOOLONG", l, err)
	}
	s.only()
}

// A thousand locks of one process are held at once, refused to others, and given back without a descriptor left.
func TestOddThousandLocksAtOnce(t *testing.T) {
	const n = 1000
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Max < 3*n {
		t.Skipf("needs %d descriptors: %+v, %v", 3*n, limit, err)
	}
	old := limit
	limit.Cur = max(limit.Cur, 3*n)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { unix.Setrlimit(unix.RLIMIT_NOFILE, &old) })
	s := newScene(t, t.TempDir())
	before := descriptors(t)
	var locks []*heirlock.Lock
	for i := range n {
		l, err := heirlock.TryAcquire(filepath.Join(s.dir, fmt.Sprintf("%d.lock", i)), heirlock.Options{})
		if err != nil {
			t.Fatal(err)
		}
		locks = append(locks, l)
	}
	if got := len(s.names()); got != n {
		t.Errorf("%d files, want %d", got, n)
	}
	for _, l := range locks {
		if _, err := heirlock.TryAcquire(l.Path, heirlock.Options{Policy: heirlock.ReclaimReleased}); !errors.Is(err, heirlock.ErrHeld) {
			t.Fatalf("%s: %v, want a refusal", l.Path, err)
		}
	}
	for _, l := range locks {
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
	}
	s.only()
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}
