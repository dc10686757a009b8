package journal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heirlock/heirlock"
)

// eventually waits for something that another goroutine is about to do.
func eventually(t testing.TB, what string, seen func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !seen(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not within a minute: ", what)
		}
	}
}

// Those who wait for room are served in their order, also where the second would fit already; when the first gives up, the
// second is served.
//
//	room for 1 small event · large waits · small waits behind it · large gives up · small is accepted
func TestWaitingInOrder(t *testing.T) {
	small, large := item{}, item{Text: strings.Repeat("x", 80)}
	most := int64(frameBytes(1, 100))
	j, err := prepare(filepath.Join(inMemory(t), "j"), Options[item]{
		MaxEventBytes: 100, MaxPendingItems: 10, MaxPendingBytes: most + most/2, MaxFileBytes: 1 << 10, MaxFiles: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Submit(item{Text: strings.Repeat("x", 20)}); err != nil {
		t.Fatal(err)
	}
	waiting := func(n int) func() bool {
		return func() bool {
			j.ledger.mu.Lock()
			defer j.ledger.mu.Unlock()
			return len(j.ledger.waiting) == n
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	first, second := make(chan error, 1), make(chan Receipt, 1)
	go func() {
		_, err := j.SubmitWait(ctx, large)
		first <- err
	}()
	eventually(t, "the large event waits", waiting(1))
	go func() {
		r, err := j.SubmitWait(context.Background(), small)
		if err != nil {
			t.Error(err)
		}
		second <- r
	}()
	eventually(t, "the small event waits behind it", waiting(2))
	why := errors.New("gave up")
	cancel(why)
	if err := <-first; err != why {
		t.Errorf("the first: %v", err)
	}
	if r := <-second; r.Sequence != 2 {
		t.Errorf("the second: %+v", r)
	}
	if s := j.Status(); s.Received != 2 || s.Accepted != 2 || s.Refused != 0 {
		t.Errorf("status %v", j)
	}
	go j.writer.run()
	if err := j.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// A frame does not wait for long: without a Flush, it is in the file soon, also when the writer had gone to sleep.
func TestFramesDoNotWait(t *testing.T) {
	j, err := Open(filepath.Join(inMemory(t), "j"), stormOptions(""))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close(context.Background())
	for n := range uint64(3) {
		if _, err := j.Submit(item{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the frame is written", func() bool { return j.Status().Written == n+1 })
		eventually(t, "the writer sleeps without a timer", func() bool {
			j.ledger.mu.Lock()
			defer j.ledger.mu.Unlock()
			return j.ledger.dormant
		})
	}
}

// A Flush whose context ends does not wait; what it waited for goes on. So with Sync and Close.
func TestWaitsAreCutShort(t *testing.T) {
	j, err := prepare(filepath.Join(inMemory(t), "j"), stormOptions(""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Submit(item{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("no time")
	results := make(chan error, 3)
	for _, wait := range []func(context.Context) error{j.Flush, j.Sync, j.Close} {
		go func() { results <- wait(ctx) }()
	}
	eventually(t, "all of them wait", func() bool {
		j.ledger.mu.Lock()
		defer j.ledger.mu.Unlock()
		return len(j.ledger.marks) == 2 && j.ledger.st.State == stateDraining
	})
	cancel(why)
	for range 3 {
		if err := <-results; err != why {
			t.Errorf("%v, want the cause of the context", err)
		}
	}
	if len(j.ledger.marks) != 0 {
		t.Error("a wait that has ended is kept")
	}
	if _, err := j.Submit(item{}); !errors.Is(err, ErrClosed) {
		t.Errorf("submit: %v", err)
	}
	go j.writer.run()
	if err := j.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(ctx); err != nil {
		t.Errorf("a close that is done already: %v", err)
	}
	if s := j.Status(); s.State != stateClosed || s.Written != 1 {
		t.Errorf("status %v", j)
	}
}

// The lock is looked at by its name before each batch, whatever its watch has seen.
func TestLockIsLookedAt(t *testing.T) {
	path := filepath.Join(inMemory(t), "j")
	j, err := prepare(path, stormOptions(""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Submit(item{}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	if phase, err := j.writer.batch(); phase != phaseLock || !errors.Is(err, heirlock.ErrLost) {
		t.Errorf("phase %s, %v", phase, err)
	}
	if st, err := os.Stat(path); err != nil || st.Size() > 0 {
		t.Errorf("written without the lock: %v, %v", st, err)
	}
	go j.writer.run()
	if err := j.Close(context.Background()); !errors.Is(err, heirlock.ErrLost) {
		t.Errorf("close: %v", err)
	}
}
