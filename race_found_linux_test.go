package heirlock_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/heirlock/heirlock"
)

// The look at the name right after the publishing call fails once (EIO): the kernel has said that the name was
// given, and the lock is taken. An error would leave the name behind, with the record of this living process.
//
//	A:  linkat x.lock = 0 · fstatat x.lock = EIO ─▶ held
func TestRaceLookAfterPublishFails(t *testing.T) {
	sweeping(t)
	for _, p := range []plan{planTake, planTake.with("rename"), planTake.with("link"), planInherit} {
		at := shm(t)
		calls := p.recorded(t, at)
		i := slices.IndexFunc(calls, func(c call) bool {
			return (c.name == "linkat" || c.name == "renameat2") && c.texts[len(c.texts)-1] == "x.lock"
		})
		for calls[i].name != "newfstatat" {
			i++
		}
		p.failed(t, at, calls[i], "EIO")
	}
}

// EINTR is no error, at no call: neither while the process measures itself, nor of fchmod, to which FUSE can answer it.
func TestRaceEINTRNeverSurfaces(t *testing.T) {
	sweeping(t)
	at := shm(t)
	p := planTake.with("rename,0666")
	for _, c := range p.recorded(t, at) {
		p.failed(t, at, c, "EINTR")
	}
}

// A process that could not measure itself once, for want of a descriptor, is measured again: a record without an instance
// can never be inherited by proof.
func TestRaceMeasurementFailedOnce(t *testing.T) {
	sweeping(t)
	at := shm(t)
	p := plan{options: "refuse", steps: []string{"acquire", "release", "acquire", "release"}}
	for _, c := range p.recorded(t, at) {
		if c.name != "openat" || !strings.HasPrefix(strings.Join(c.texts, ""), "/proc/") {
			continue
		}
		s := p.scene(t, at)
		tr := underStrace(t, fmt.Sprintf("%s:error=EMFILE:when=%d", c.name, c.nth), s, p.options, p.steps...)
		first := tr.expect("held")
		tr.expect("released")
		second := tr.expect("held")
		tr.expect("released")
		tr.wait()
		if strings.HasSuffix(second, "void") {
			t.Errorf("%v failed once: first %s, and still %s", c, first, second)
		}
	}
}

// Too many open files at a lock that exists is an error of this process, not a refusal: a waiting call would wait for ever.
func TestOddTooManyOpenFilesAtALockThatExists(t *testing.T) {
	s := newScene(t, t.TempDir())
	leaveDead(t, s.path)
	a := play(t, nil, "starved", s.path, "reclaim-stale")
	for line := range a.lines {
		if strings.HasPrefix(line, "starved") && !strings.HasPrefix(line, "starved emfile=true") {
			t.Errorf("%s", line)
		}
		if strings.HasPrefix(line, "starved") {
			a.say("")
		}
	}
	a.wait()
}

// A removal by hand between a reclaimer's comparison and its unlink is an observed change: it starts over, and takes the name.
func TestRaceRemovalBetweenCompareAndUnlink(t *testing.T) {
	sweeping(t)
	at := shm(t)
	calls := planInherit.recorded(t, at)
	unlink := slices.IndexFunc(calls, func(c call) bool { return c.String() == "unlinkat x.lock" })
	c := calls[unlink-1]
	s := planInherit.scene(t, at)
	tr := underStrace(t, fmt.Sprintf("%s:signal=SIGSTOP:when=%d", c.name, c.nth), s, planInherit.options, planInherit.steps...)
	if !tr.stopped() {
		t.Fatal(c)
	}
	os.Remove(s.path)
	tr.proceed()
	if line := <-tr.lines; !strings.HasPrefix(line, "held") {
		t.Errorf("it said %q, want the free name taken", line)
	}
	tr.wait()
}

// A reclaim of a free lock sweeps what killed processes left: where every owner releases, no other would.
func TestRaceReclaimOfAFreeLockSweeps(t *testing.T) {
	sweeping(t)
	at := shm(t)
	p := planTake.with("rename")
	s := p.scene(t, at)
	tr := underStrace(t, "renameat2:signal=KILL:when=1", s, p.options, p.steps...)
	tr.wait()
	if len(s.temporaries()) != 1 {
		t.Fatal(s.names())
	}
	if d, err := heirlock.Reclaim(s.path, "", heirlock.Options{}); err != nil || d.State != "free" {
		t.Fatal(d, err)
	}
	s.only()
}
