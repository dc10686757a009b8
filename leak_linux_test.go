package heirlock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func openFiles(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// A stale lock whose guard somebody holds: each attempt of a waiting call makes a guard of its own, finds the name taken,
// and keeps the file for the next attempt. When the wait ends, all of them are closed.
func TestWaitBehindAGuardLeaksNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	record := `{"pid":2147483646,"host":"` + hostname() + `","acquiredAt":"t"}` + "\n" // nobody's number, on this machine
	if err := os.WriteFile(path, []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err := Inspect(path, Options{}); err != nil || d.State != stateStale {
		t.Skipf("nobody is proven dead here: %+v, %v", d, err)
	}
	tt, err := resolve(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tt.close()
	guard, err := tt.createGuard()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tt.remove(&guard); guard.file.Close() }()
	before := openFiles(t)
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if _, err := Acquire(ctx, path, Options{}); !errors.Is(err, ErrHeld) {
			t.Errorf("%v", err)
		}
		cancel()
	}
	for end := time.Now().Add(10 * time.Second); openFiles(t) > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d files open before, %d after", before, openFiles(t))
		}
	}
}

// Out of descriptors, the vigil shares the lock's directory: Release neither waits for it while holding what it waits for,
// nor closes the directory under it, and what was released is not lost.
func TestVigilThatSharesTheDirectory(t *testing.T) {
	l, err := TryAcquire(filepath.Join(t.TempDir(), "x.lock"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := openFiles(t)
	l.lost = make(chan struct{})
	l.vigil = &vigil{l: l, dir: l.t.dir, wake: make(chan struct{})}
	go l.vigil.keep()
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); openFiles(t) > before-2; time.Sleep(time.Millisecond) { // the file, the directory
		if time.Now().After(end) {
			t.Fatalf("%d files open before, %d after", before, openFiles(t))
		}
	}
	select {
	case <-l.Lost():
		t.Error("released, and called lost")
	default:
	}
}
