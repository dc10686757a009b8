package heirlock_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heirlock/heirlock"
)

// Behaviour to keep around the lock's file: its mode, its other names, and what lies beside it.

// A release leaves a file alone that is not its own any more, says so, and says so again.
func TestOddReleaseLeavesAReplacedFileAlone(t *testing.T) {
	for name, replace := range map[string]func(s *scene) error{
		"removed":  func(s *scene) error { return os.Remove(s.path) },
		"renamed":  func(s *scene) error { return os.Rename(s.path, filepath.Join(s.dir, "away")) },
		"replaced": func(s *scene) error { leaveDead(s.t, s.path); return nil },
		"symlink": func(s *scene) error {
			away := filepath.Join(s.dir, "away")
			return errors.Join(os.Rename(s.path, away), os.Symlink(away, s.path))
		},
		"directory": func(s *scene) error { return errors.Join(os.Remove(s.path), os.Mkdir(s.path, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, journalledOr(t))
			l, err := heirlock.TryAcquire(s.path, heirlock.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := replace(s); err != nil {
				t.Fatal(err)
			}
			before := s.picture()
			for range 2 {
				if err := l.Release(); !errors.Is(err, heirlock.ErrLost) {
					t.Errorf("%v, want ErrLost", err)
				}
			}
			if after := s.picture(); after != before {
				t.Errorf("before:\n%safter:\n%s", before, after)
			}
		})
	}
}

// journalledOr is the filesystem that hands inode numbers out again, as root; else any.
func journalledOr(t *testing.T) string {
	if os.Geteuid() != 0 {
		return t.TempDir()
	}
	return journalled(t)
}

// A lock's file has exactly its mode under any umask: 0600 unless the caller says otherwise.
func TestOddExactModeUnderAnyUmask(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o077} {
		for _, mode := range []os.FileMode{0, 0o600, 0o644, 0o666, 0o400} {
			s := newScene(t, t.TempDir())
			old := unix.Umask(umask)
			l, err := heirlock.TryAcquire(s.path, heirlock.Options{Mode: mode})
			unix.Umask(old)
			if err != nil {
				t.Fatalf("umask %#o, mode %#o: %v", umask, mode, err)
			}
			want := mode
			if mode == 0 {
				want = 0o600
			}
			if info, err := os.Stat(s.path); err != nil || info.Mode() != want {
				t.Errorf("umask %#o, mode %#o: %v, %v", umask, mode, info.Mode(), err)
			}
			if err := l.Release(); err != nil {
				t.Error(err)
			}
			s.only()
		}
	}
}

// A second name of a held lock's file, as backup tools make them, does not make the release leave the lock behind; nor is
// the second name touched.
func TestOddHardLinkOnAHeldLock(t *testing.T) {
	s := newScene(t, t.TempDir())
	l, err := heirlock.TryAcquire(s.path, heirlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Link(s.path, filepath.Join(s.dir, "backup")); err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	s.only("backup")
}

// What other programs of the format leave in the directory is theirs: a guard over a guard, staging files.
func TestOddForeignNeighboursStay(t *testing.T) {
	s := newScene(t, t.TempDir())
	nested, staging := s.guard()+".reclaim", filepath.Join(s.dir, ".lock-0190aaaa-bbbb-7ccc-8ddd-eeeeffff0000.tmp")
	notOurs := filepath.Join(s.dir, ".heirlock-notes")
	for _, path := range []string{s.path, s.guard(), nested, staging} {
		leaveDead(t, path)
	}
	if err := os.WriteFile(notOurs, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(nested)
	for range 2 {
		s.takeAndRelease()
		s.only(filepath.Base(notOurs), filepath.Base(staging), "x.lock.reclaim.reclaim")
		leaveDead(t, s.path)
	}
	if after, err := os.ReadFile(nested); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the guard's guard holds %q, %v", after, err)
	}
}
