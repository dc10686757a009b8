package heirlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heirlock/heirlock"
)

// Behaviour that programs of the format rely on (COMPAT.md, "Behaviour to keep"), one test each.

// While the work runs the file names this process and this acquisition; afterwards the name is gone.
func TestOddWorkRunsWhileTheRecordNamesUs(t *testing.T) {
	s := newScene(t, t.TempDir())
	l, err := heirlock.TryAcquire(s.path, heirlock.Options{Label: "work"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(s.path)
	for _, want := range []string{fmt.Sprintf(`{"pid":%d,`, os.Getpid()), l.Owner.Evidence.Acquisition, `"label":"work"`} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("the record %s, %v; want %s in it", text, err, want)
		}
	}
	s.only("x.lock")
	for range 2 {
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
	s.only()
}

// A call whose context has ended creates nothing and does not even look, though the lock is there for the taking.
func TestOddCancelledCallCreatesNothing(t *testing.T) {
	s := newScene(t, t.TempDir())
	reason := errors.New("not any more")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if l, err := heirlock.Acquire(ctx, s.path, heirlock.Options{}); !errors.Is(err, reason) || l != nil {
		t.Errorf("%v, %v; want the reason", l, err)
	}
	s.only()
	leaveDead(t, s.path)
	before := s.picture()
	if l, err := heirlock.Acquire(ctx, s.path, heirlock.Options{}); !errors.Is(err, reason) || l != nil {
		t.Errorf("%v, %v; want the reason", l, err)
	}
	if after := s.picture(); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
}

// A wait ends with its context, at once: the error is a refusal with its holder and time, and the reason of the end.
//
//	owner:   ────────── holds ─────────────────────────▶
//	waiter:       first attempt · pause · attempt · … ✗ cancelled anywhere in between
func TestOddCancelDuringAWaitIsPrompt(t *testing.T) {
	s := newScene(t, t.TempDir())
	owner := play(t, nil, "hold", s.path, "refuse")
	acquisition := strings.Fields(owner.expect("held"))[0]
	before, reason := s.picture(), errors.New("enough")
	for _, after := range []time.Duration{time.Millisecond, 30 * time.Millisecond, 400 * time.Millisecond} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var cancelled time.Time
		time.AfterFunc(after, func() { cancelled = time.Now(); cancel(reason) })
		_, err := heirlock.Acquire(ctx, s.path, heirlock.Options{})
		late := time.Since(cancelled)
		var refused *heirlock.HeldError
		switch {
		case !errors.As(err, &refused) || !errors.Is(err, heirlock.ErrHeld) || !errors.Is(err, reason) || late > 200*time.Millisecond:
			t.Errorf("%v, %v after the cancel; want a refusal with the reason, at once", err, late)
		case refused.Diagnosis.Owner.Evidence.Acquisition != acquisition || refused.Waited < after/2:
			t.Errorf("%+v, want the owner and the wait", refused)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := heirlock.Acquire(ctx, s.path, heirlock.Options{}); !errors.Is(err, context.Canceled) || !errors.Is(err, heirlock.ErrHeld) {
		t.Errorf("%v; want a refusal and context.Canceled", err)
	}
	if after := s.picture(); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
}

// A wait that ends with its context is a refusal that names the holder, wherever in the wait the end falls: in a pause, in an
// attempt, or between the two.
//
//	owner:    ─────── holds ───────▶
//	waiter:   attempt · pause · attempt · …      the context ends 5 ms, 5.05 ms, 5.1 ms … after the call
func TestOddEveryEndOfAWaitNamesTheHolder(t *testing.T) {
	t.Parallel()
	s := newScene(t, t.TempDir())
	l, err := heirlock.TryAcquire(s.path, heirlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	bare := 0
	const n = 200
	for i := range n {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond+time.Duration(i)*50*time.Microsecond)
		looked := &firstLook{Context: ctx}
		_, err := heirlock.Acquire(looked, s.path, heirlock.Options{})
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if !errors.Is(err, heirlock.ErrHeld) && looked.first == nil {
			bare++
		}
	}
	if bare > 0 {
		t.Errorf("%d of %d ended waits did not say who holds the lock", bare, n)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

// firstLook remembers what its user saw first: a context that had ended before the call is no wait.
type firstLook struct {
	context.Context
	once  sync.Once
	first error
}

func (c *firstLook) Err() error {
	err := c.Context.Err()
	c.once.Do(func() { c.first = err })
	return err
}

// Without a wait there is one attempt, which may still inherit; a waiting call gets the lock when its owner gives it back.
func TestOddOneAttemptMayInherit(t *testing.T) {
	s := newScene(t, t.TempDir())
	leaveDead(t, s.path)
	l, err := heirlock.TryAcquire(s.path, heirlock.Options{Policy: heirlock.ReclaimStale})
	if err != nil || l.Reclaimed == nil || l.Reclaimed.Liveness != "gone" {
		t.Fatalf("%+v, %v; want it inherited", l, err)
	}
	start := time.Now()
	if _, err := heirlock.TryAcquire(s.path, heirlock.Options{Policy: heirlock.ReclaimStale}); !errors.Is(err, heirlock.ErrHeld) || time.Since(start) > time.Second {
		t.Errorf("%v after %v; want a refusal at once", err, time.Since(start))
	}
	got := make(chan error)
	go func() {
		l, err := heirlock.Acquire(t.Context(), s.path, heirlock.Options{})
		if err == nil {
			err = l.Release()
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Errorf("a waiter got a held lock: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := errors.Join(l.Release(), <-got); err != nil {
		t.Error(err)
	}
	s.only()
}

// Refusals keep no descriptor: 50 of a FIFO at the lock's path, and 50 of one at the guard's.
func TestOddRefusalsLeakNoDescriptor(t *testing.T) {
	s := newScene(t, t.TempDir())
	other := &scene{t, s.dir, filepath.Join(s.dir, "y.lock")}
	leaveDead(t, other.path)
	if err := errors.Join(unix.Mkfifo(s.path, 0o600), unix.Mkfifo(other.guard(), 0o600)); err != nil {
		t.Fatal(err)
	}
	refuse := func() {
		for _, path := range []string{s.path, other.path} {
			if _, err := heirlock.TryAcquire(path, heirlock.Options{Policy: heirlock.ReclaimStale}); !errors.Is(err, heirlock.ErrHeld) {
				t.Fatal(err)
			}
			if _, err := heirlock.Inspect(path, heirlock.Options{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	refuse()
	before := descriptors(t)
	for range 50 {
		refuse()
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// A record that grows by a byte while it is read is not believed, though every state of it is a dead owner's record.
//
//	taker:   fstat · pread ▲ · fstat · differs, again …            17 looks ─▶ refused: changing
//	writer:                append a space, each time
func TestOddGrowingRecordIsRefused(t *testing.T) {
	needs(t, "strace")
	s := newScene(t, t.TempDir())
	leaveDead(t, s.path)
	tr := underStrace(t, "pread64:signal=SIGSTOP", s, "reclaim-stale", "measure", "acquire")
	for n := 1; ; n++ {
		text := tr.logged(func(text string) bool {
			return strings.Count(text, "--- SIGSTOP {") >= n && strings.Count(text, "stopped by SIGSTOP") >= n || tr.ended().MatchString(text)
		})
		if tr.ended().MatchString(text) {
			break
		}
		f, err := os.OpenFile(s.path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteString(" ")
		f.Close()
		tr.proceed()
	}
	if said := tr.expect("refused"); !strings.Contains(said, "changing") {
		t.Errorf("it said %s, want that it was changing", said)
	}
	tr.wait()
	s.only("x.lock")
	s.tidy()
}
