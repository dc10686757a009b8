package heirlock_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/heirlock/heirlock"
)

// The record of a live process is written to its temporary before that has the lock's name; whoever sweeps leaves the
// temporary of a live process alone, or that process begins again.
//
//	A:      openat .heirlock-a · fstat · fstatfs · flock · pwrite · renameat2 (or linkat, unlinkat) · …
//	                 ▲ stopped after any of these                                 goes on ─▶ takes the lock, or is refused by C
//	B, C:   inherit a dead lock, which sweeps        before flock: A's temporary goes; after it: it stays
func TestRaceSweeperAndALiveTemporary(t *testing.T) {
	sweeping(t)
	t.Parallel()
	at := shm(t)
	for _, route := range []string{"rename", "link"} {
		var kept, swept int
		p := planMeasured.with(route)
		for _, c := range p.recorded(t, at) {
			s := p.scene(t, at)
			tr := underStrace(t, fmt.Sprintf("%s:signal=SIGSTOP:when=%d", c.name, c.nth), s, p.options, p.steps...)
			if !tr.stopped() {
				t.Fatalf("it was not stopped at %v", c)
			}
			temporaries, free := s.temporaries(), true
			if _, err := os.Lstat(s.path); err == nil {
				free = false
			}
			if free && len(temporaries) > 0 {
				leaveDead(t, s.path)
				s.takeAndRelease()
				if left := s.temporaries(); slices.Equal(left, temporaries) {
					kept++
				} else if len(left) == 0 {
					swept++
				}
			}
			tr.proceed()
			tr.expect("held")
			tr.expect("released")
			tr.wait()
			s.only()
			if t.Failed() {
				t.Fatalf("%s: stopped after %v", route, c)
			}
		}
		t.Logf("%s: a temporary of the stopped process stayed %d times, and was swept %d times", route, kept, swept)
		if kept < 2 || swept < 1 || swept > 3 {
			t.Errorf("%s: want it swept only before its flock", route)
		}
	}
}

// temporaries are the names of unpublished files.
func (s *scene) temporaries() []string {
	return slices.DeleteFunc(s.names(), func(n string) bool { return !strings.HasPrefix(n, ".heirlock-") })
}

func (s *scene) takeAndRelease() {
	s.t.Helper()
	l, err := heirlock.TryAcquire(s.path, heirlock.Options{Policy: heirlock.ReclaimStale})
	if err != nil {
		s.t.Errorf("the next taker: %v", err)
		return
	}
	if err := l.Release(); err != nil {
		s.t.Error(err)
	}
}
