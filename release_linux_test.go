package heirlock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Between the acquire and the release the directory becomes one that may be searched and written, but not opened, so
// that the name can go and the sync cannot: the lock is given up, and the error says what it is about.
func TestReleaseThatCannotBeSynced(t *testing.T) {
	dir := t.TempDir()
	if os.Getuid() == 0 { // root may open everything: this thread is somebody else for the filesystem
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer unix.SetfsuidRetUid(0)
		unix.SetfsuidRetUid(65534)
	}
	path := filepath.Join(dir, "x.lock")
	l, err := TryAcquire(path, Options{Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Chmod(dir, 0o300); err != nil {
		t.Fatal(err)
	}
	defer unix.Chmod(dir, 0o700)
	for range 2 {
		if err := l.Release(); !errors.Is(err, errNotDurable) || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%v, want that it could not be synced, for want of permission", err)
		}
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the name is still there: %v", err)
	}
}
