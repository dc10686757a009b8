package heirlock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Waiters of one process get the lock in the order in which they came, through any path to the same file; one that is
// cancelled leaves at once, wherever it stands.
func TestWaitersStandInLine(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	paths := []string{filepath.Join(dir, "real", "x.lock"), filepath.Join(dir, "link", "x.lock")}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	first, err := TryAcquire(paths[0], Options{})
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyOf(first.t.dir, first.t.name)
	if err != nil {
		t.Fatal(err)
	}
	standing := func() int {
		linesMu.Lock()
		defer linesMu.Unlock()
		return len(lines[key])
	}
	const n = 20
	got, errs := make(chan int, n), make(chan error, n)
	cancels := make([]context.CancelFunc, n)
	for i := range n {
		var ctx context.Context
		ctx, cancels[i] = context.WithCancel(t.Context())
		defer cancels[i]()
		go func() {
			l, err := Acquire(ctx, paths[i%2], Options{})
			if err == nil {
				got <- i
				err = l.Release()
			}
			errs <- err
		}()
		for standing() <= i {
			time.Sleep(50 * time.Microsecond)
		}
	}
	away := []int{0, 7, n - 1} // the first, which contends; one in the middle; the last
	for _, i := range away {
		cancels[i]()
		if err := <-errs; !errors.Is(err, context.Canceled) || !errors.Is(err, ErrHeld) {
			t.Errorf("cancelled waiter %d: %v", i, err)
		}
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	var order, want []int
	for i := range n {
		if !slices.Contains(away, i) {
			order, want = append(order, <-got), append(want, i)
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	}
	if !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	if standing() != 0 || inLine.Load() != 0 {
		t.Errorf("%d still stand in line, %d in all", standing(), inLine.Load())
	}
}
