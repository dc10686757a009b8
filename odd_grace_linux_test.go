package heirlock_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/heirlock/heirlock"
)

// ownerlessScene has a file at the lock's path that no program of the format wrote.
func ownerlessScene(t *testing.T) *scene {
	s := newScene(t, t.TempDir())
	if err := os.WriteFile(s.path, []byte("what is this?\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// acquired takes an ownerless lock with a grace and gives it back; it returns how long that took.
func (s *scene) acquired(grace time.Duration) time.Duration {
	s.t.Helper()
	start := time.Now()
	ctx, cancel := context.WithTimeout(s.t.(*testing.T).Context(), 20*time.Second)
	defer cancel()
	l, err := heirlock.Acquire(ctx, s.path, heirlock.Options{OwnerlessGrace: &grace})
	took := time.Since(start)
	if err != nil {
		s.t.Fatal(err)
	}
	if l.Reclaimed == nil || l.Reclaimed.State != "ownerless" || l.Reclaimed.Cause == "" {
		s.t.Errorf("it was taken on %+v, want ownerless, with the cause", l.Reclaimed)
	}
	if err := l.Release(); err != nil {
		s.t.Error(err)
	}
	s.only()
	return took
}

// refusedWithin waits for a lock for a while and requires a refusal that changed nothing.
func (s *scene) refusedWithin(d time.Duration, opts heirlock.Options) {
	s.t.Helper()
	before := s.picture()
	ctx, cancel := context.WithTimeout(s.t.(*testing.T).Context(), d)
	defer cancel()
	if l, err := heirlock.Acquire(ctx, s.path, opts); !errors.Is(err, heirlock.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
		s.t.Errorf("%+v, %v; want a refusal", l, err)
	}
	if after := s.picture(); after != before {
		s.t.Errorf("before:\n%safter:\n%s", before, after)
	}
}

func TestOddGraceZeroSkipsOnlyTheWait(t *testing.T) {
	if took := ownerlessScene(t).acquired(0); took > time.Second {
		t.Errorf("it took %v, want no wait", took)
	}
}

// The caller itself must have seen the file for so long; its times, of 1970, count for nothing.
func TestOddGraceIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := ownerlessScene(t)
	old := time.Unix(0, 0)
	if err := os.Chtimes(s.path, old, old); err != nil {
		t.Fatal(err)
	}
	const grace = 300 * time.Millisecond
	if took := s.acquired(grace); took < grace {
		t.Errorf("it took %v, want at least %v", took, grace)
	}
}

// Whoever touches the file meanwhile starts the wait again: it is not abandoned.
//
//	caller:   first sight ───── grace ─────┊            ▶ taken a whole grace after the touch
//	toucher:           ▲ touch ───────── grace ────────▶
func TestOddGraceBeginsAgainWhenTheFileIsTouched(t *testing.T) {
	t.Parallel()
	for name, touch := range map[string]func(path string) error{
		"rewritten": func(path string) error { return os.WriteFile(path, []byte("other bytes..\n"), 0o600) },
		"times":     func(path string) error { return os.Chtimes(path, time.Time{}, time.Now()) },
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", []byte("what is this?\n"), 0o600), os.Rename(path+".new", path))
		},
		"mode": func(path string) error { return os.Chmod(path, 0o640) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := ownerlessScene(t)
			const grace = 500 * time.Millisecond
			touched := make(chan time.Time, 1)
			time.AfterFunc(grace/2, func() {
				if err := touch(s.path); err != nil {
					t.Error(err)
				}
				touched <- time.Now()
			})
			s.acquired(grace)
			if since := time.Since(<-touched); since < grace {
				t.Errorf("taken %v after the file was touched, want at least %v", since, grace)
			}
		})
	}
}

// Refuse wins over any grace; without a grace nothing goes; an attempt and a reclaim have none; an owner that is not known is
// no missing owner; nor is a process that is not known a missing one.
func TestOddGraceHasBounds(t *testing.T) {
	t.Parallel()
	zero := time.Duration(0)
	s := ownerlessScene(t)
	s.refusedWithin(100*time.Millisecond, heirlock.Options{Policy: heirlock.Refuse, OwnerlessGrace: &zero})
	s.refusedWithin(100*time.Millisecond, heirlock.Options{Policy: heirlock.ReclaimReleased})
	if l, err := heirlock.TryAcquire(s.path, heirlock.Options{Policy: heirlock.ReclaimStale, OwnerlessGrace: &zero}); !errors.Is(err, heirlock.ErrHeld) {
		t.Errorf("TryAcquire: %v, %v; want a refusal", l, err)
	}
	if d, err := heirlock.Reclaim(s.path, "", heirlock.Options{OwnerlessGrace: &zero}); !errors.Is(err, heirlock.ErrHeld) {
		t.Errorf("Reclaim: %v, %v; want a refusal", d, err)
	}
	for _, text := range []string{
		`{"pid":0,"host":"h","acquiredAt":"t"}`, `{"host":"h"}`, `{"evidence":{}}`, `{"pid":1,"pid":1,"host":"h","acquiredAt":"t"}`,
		`{"pid":2147483646,"process":7,"host":"` + hostname(t) + `","acquiredAt":"t"}`,
	} {
		if err := os.WriteFile(s.path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.refusedWithin(50*time.Millisecond, heirlock.Options{OwnerlessGrace: &zero})
	}
}

// An ownerless guard beside a dead lock goes once one waiting call has seen it unchanged for five seconds; before that, and
// for a call that does not wait, it stands in the way.
func TestOddOwnerlessGuardGoesAfterFiveSeconds(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for five seconds")
	}
	t.Parallel()
	s := newScene(t, t.TempDir())
	leaveDead(t, s.path)
	if err := os.WriteFile(s.guard(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if l, err := heirlock.TryAcquire(s.path, heirlock.Options{Policy: heirlock.ReclaimStale}); !errors.Is(err, heirlock.ErrHeld) {
			t.Fatalf("TryAcquire: %v, %v; want a refusal", l, err)
		}
	}
	start := time.Now()
	l, err := heirlock.Acquire(t.Context(), s.path, heirlock.Options{})
	took := time.Since(start)
	if err != nil {
		t.Fatal(err)
	}
	if took < 5*time.Second || l.Reclaimed == nil || l.Reclaimed.State != "stale" {
		t.Errorf("after %v, on %+v; want five seconds, and the dead lock inherited", took, l.Reclaimed)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	s.only()
}
