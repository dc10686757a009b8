package heirlock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/heirlock/heirlock/internal/kernel"
)

// A loser of a crowd comes back and finds a directory where the lock was: no event to run after, but a refusal that the
// next attempt explains.
func TestLoserFindsNoLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	tt, err := resolve(path, Options{Policy: ReclaimStale})
	if err != nil {
		t.Fatal(err)
	}
	defer tt.close()
	w := wait{t: tt, start: time.Now(), pause: pollFirst}
	if event, err := w.loseTo(t.Context()); err != nil || event != (kernel.Event{}) {
		t.Errorf("%+v, %v; want no event", event, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Acquire(ctx, path, Options{}); !errors.Is(err, ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
