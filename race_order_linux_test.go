package heirlock_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/heirlock/heirlock"
)

// passage is what happened while a process was stopped after one of its calls.
type passage struct {
	after  string
	taken  bool // the others got the lock meanwhile
	reused bool // the newcomer's file has the inode number of the file that was there before
}

// guest is somebody who came by and has the lock.
type guest struct {
	acquisition string
	release     func() error
}

// halfway runs the plan and stops it after every call that it makes in these steps, each time in a new process. While it
// is stopped others come by; the last of them may have the lock and keep it while the stopped process goes on. Then
// settle looks at what both have.
func (p plan) halfway(t *testing.T, parent, steps string, others func(*scene) *guest, settle func(*scene, *traced, *guest)) []passage {
	t.Helper()
	var passages []passage
	for _, c := range p.recorded(t, parent) {
		if !strings.Contains(steps, c.step) {
			continue
		}
		s := p.scene(t, parent)
		tr := underStrace(t, fmt.Sprintf("%s:signal=SIGSTOP:when=%d", c.name, c.nth), s, p.options, p.steps...)
		if !tr.stopped() {
			t.Fatalf("it was not stopped at %v, number %d", c, c.nth)
		}
		before, _ := os.Lstat(s.path)
		newcomer := others(s)
		pass := passage{after: c.String(), taken: newcomer != nil}
		if newcomer != nil && before != nil {
			pass.reused = inode(t, s.path) == before.Sys().(*syscall.Stat_t).Ino
		}
		passages = append(passages, pass)
		tr.proceed()
		settle(s, tr, newcomer)
		s.tidy()
		if t.Failed() {
			t.Fatalf("stopped after %v", c)
		}
	}
	return passages
}

// takerAndNewcomer: one takes the lock if that can be, and gives it back; the next has the name. Nil if it was refused.
func takerAndNewcomer(s *scene) *guest {
	s.t.Helper()
	taker := takes(s)
	if taker == nil {
		return nil
	}
	if err := taker.release(); err != nil {
		s.t.Fatal(err)
	}
	return takes(s)
}

func takes(s *scene) *guest {
	s.t.Helper()
	l, err := heirlock.TryAcquire(s.path, heirlock.Options{Policy: heirlock.ReclaimStale})
	if errors.Is(err, heirlock.ErrHeld) {
		return nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return &guest{l.Owner.Evidence.Acquisition, l.Release}
}

// keeps requires that the newcomer's file is untouched, and gives it back.
func (s *scene) keeps(newcomer *guest) {
	s.t.Helper()
	text, err := os.ReadFile(s.path)
	if err != nil || !strings.Contains(string(text), newcomer.acquisition) {
		s.t.Errorf("the newcomer's lock holds %q, %v", text, err)
	}
	if err := newcomer.release(); err != nil {
		s.t.Errorf("the newcomer's release: %v", err)
	}
}

// A reclaimer is stopped after each of its calls, while another reclaimer and a newcomer come by.
//
//	reclaimer A:  look · [guard: open flock read compare unlink] · guard · [lock: open flock read compare unlink] · link
//	                  ▲ stopped after any of these                                                     goes on ─▶
//	reclaimer B:        inherits, releases      (or is refused: A has the guard, the lock, or their flock)
//	newcomer C:                       takes the name, with the dead lock's inode number ─────────────▶ still has it
//
// A reclaimer that trusted what it had read before the flock, or compared a number whose file it had closed, would
// remove C's lock here. Either C holds and A is refused, or B was refused and A takes the lock.
func TestRaceReclaimerStoppedBetweenItsSteps(t *testing.T) {
	sweeping(t)
	t.Parallel()
	at := journalled(t)
	passages := planInherit.halfway(t, at, "acquire", takerAndNewcomer, func(s *scene, tr *traced, newcomer *guest) {
		if newcomer == nil {
			tr.expect("held")
			tr.expect("released")
			tr.wait()
			return
		}
		refusedBy(tr, newcomer)
		s.keeps(newcomer)
	})
	interleaved(t, passages, "newfstatat x.lock", "openat x.lock", "openat x.lock.reclaim", "flock", "unlinkat x.lock.reclaim")
	if !slices.ContainsFunc(passages, func(p passage) bool { return p.reused }) {
		t.Errorf("no newcomer had the inode number of the dead lock: %+v", passages)
	}
}

// refusedBy waits for the refusal of a stopped process that went on, and requires that it names this owner.
func refusedBy(tr *traced, owner *guest) {
	tr.t.Helper()
	var d struct {
		State string
		Owner struct {
			Evidence struct{ Acquisition string }
		}
	}
	if err := json.Unmarshal([]byte(tr.expect("refused")), &d); err != nil {
		tr.t.Fatal(err)
	}
	tr.wait()
	if d.State != "held" || d.Owner.Evidence.Acquisition != owner.acquisition {
		tr.t.Errorf("it was refused by %+v, want %s, held", d, owner.acquisition)
	}
}

// interleaved requires that the others got the lock after at least these calls, and were refused after some.
func interleaved(t *testing.T, passages []passage, calls ...string) {
	t.Helper()
	taken := 0
	for _, p := range passages {
		if p.taken {
			taken++
		}
	}
	t.Logf("stopped after each of %d calls; the others got the lock after %d of them", len(passages), taken)
	for _, call := range calls {
		if !slices.ContainsFunc(passages, func(p passage) bool { return p.taken && p.after == call }) {
			t.Errorf("the others never got the lock while it was stopped after %q: %+v", call, passages)
		}
	}
	if taken == len(passages) || taken == 0 {
		t.Errorf("the others were refused never, or always")
	}
}

// Somebody who knows no guard removes the dead lock by hand and takes the name, while a reclaimer is stopped anywhere
// before its last comparison; after it nothing can help (the design names that limit).
//
//	A:        … guard · [lock: open · flock · read · compare · unlink]
//	                         ▲ stopped after any before compare      goes on ─▶ refused by C, whose lock stays
//	rm, C:                        rm x.lock · takes the name
//
// C has another inode number as long as A holds the dead file open, and that is why A holds it.
func TestRaceReclaimerAndARemovalByHand(t *testing.T) {
	sweeping(t)
	t.Parallel()
	at := journalled(t)
	calls := planInherit.recorded(t, at)
	named := func(c call, s string) bool { return c.String() == s }
	unlink := slices.IndexFunc(calls, func(c call) bool { return named(c, "unlinkat x.lock") })
	open := unlink
	for !named(calls[open], "openat x.lock") {
		open--
	}
	for _, c := range calls[open : unlink-1] {
		s := planInherit.scene(t, at)
		tr := underStrace(t, fmt.Sprintf("%s:signal=SIGSTOP:when=%d", c.name, c.nth), s, planInherit.options, planInherit.steps...)
		if !tr.stopped() {
			t.Fatalf("it was not stopped at %v", c)
		}
		os.Remove(s.path)
		newcomer := takes(s)
		tr.proceed()
		refusedBy(tr, newcomer)
		s.keeps(newcomer)
		s.tidy()
		if t.Failed() {
			t.Fatalf("stopped after %v", c)
		}
	}
	if unlink-open < 5 || !named(calls[unlink-1], "newfstatat x.lock") {
		t.Errorf("this is not the destruction of a lock: %v", calls[open:unlink])
	}
}
