package heirlock_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heirlock/heirlock"
)

// view is one file by two names that do not share the kernel's lock.
type view struct{ owner, contender string }

// views are the ways to see a file twice, each in both directions.
func views(t *testing.T, do func(t *testing.T, v view)) {
	overlay := func(t *testing.T) (string, string) { return mountOverlay(t, t.TempDir()) }
	fuse := func(t *testing.T) (string, string) {
		source := t.TempDir()
		return mountFUSE(t, source), source
	}
	twice := func(t *testing.T) (string, string) {
		source := t.TempDir()
		return mountFUSE(t, source), mountFUSE(t, source)
	}
	for name, mount := range map[string]func(*testing.T) (string, string){"overlay": overlay, "bindfs": fuse, "two bindfs": twice} {
		t.Run(name, func(t *testing.T) {
			a, b := mount(t)
			do(t, view{filepath.Join(a, "x.lock"), filepath.Join(b, "x.lock")})
		})
		t.Run(name+"-turned", func(t *testing.T) {
			a, b := mount(t)
			do(t, view{filepath.Join(b, "x.lock"), filepath.Join(a, "x.lock")})
		})
	}
}

// The owner lives behind the other view. The contender's own descriptor would get the flock at once; it says nothing.
//
//	owner, view 1:  takes ─────────────── SIGKILL
//	taker, view 2:        refused by all          inherits: the process is gone, and it handed nothing on
func TestFaultOwnerBehindOtherView(t *testing.T) {
	views(t, func(t *testing.T, v view) {
		owner := agentIn(t)
		owner.own(t, v.owner, heirlock.Options{})
		judged(t, nobody(), v.contender, "held alive matched unknown", byNobody)
		owner.die(t)
		judged(t, nobody(), v.contender, "stale gone pid-gone unknown", byLifetime)
		inherited(t, nobody(), v.contender, heirlock.Options{Policy: heirlock.ReclaimStale}, "pid-gone unknown")
	})
}

// A guard that a dead process left in one view is not cleared from the other: two who clear it from both sides share no
// flock, and the slower would remove the faster one's own guard (model/README.md). A taker in its own view clears it.
//
//	owner of guard and lock, view 1:  SIGKILL
//	taker, view 2:                            refused, for the guard
//	taker, view 1:                                                   inherits
func TestFaultDeadGuardOfOtherView(t *testing.T) {
	views(t, func(t *testing.T, v view) {
		owner := agentIn(t)
		owner.own(t, v.owner, heirlock.Options{})
		owner.own(t, v.owner+".reclaim", heirlock.Options{})
		owner.die(t)
		var refused *heirlock.HeldError
		_, err := heirlock.TryAcquire(v.contender, heirlock.Options{Policy: heirlock.ReclaimStale})
		if !errors.As(err, &refused) || refused.Diagnosis.Guard == nil || !strings.Contains(refused.Diagnosis.Guard.Cause, "another view") {
			t.Fatalf("%v, want a refusal for the guard of the other view", err)
		}
		want := "pid-gone released"
		if onFUSE(t, v.owner) {
			want = "pid-gone unknown"
		}
		inherited(t, nobody(), v.owner, heirlock.Options{Policy: heirlock.ReclaimStale}, want)
	})
}

// The wrapper is killed and its command works on, behind the other view: nothing that can be asked there would tell.
// Through the command's own view the lock is inherited when it has ended, unless that is FUSE.
//
//	wrapper, view 1:  takes, hands on ── SIGKILL
//	command, view 1:                     ──────────────────────── ends
//	taker, view 2:                              refused by all         refused by all
//	taker, view 1:                                                                    inherits
func TestFaultCommandBehindOtherView(t *testing.T) {
	views(t, func(t *testing.T, v view) {
		wrapper := agentIn(t)
		command := handOn(t, wrapper, v.owner)
		judged(t, nobody(), v.contender, "held alive matched unknown", byNobody)
		wrapper.die(t)
		const why = "its command may still be at work"
		judged(t, nobody(), v.contender, "unproven gone pid-gone unknown", byNobody, why)
		command.end(t)
		judged(t, nobody(), v.contender, "unproven gone pid-gone unknown", byNobody, why)
		if onFUSE(t, v.owner) { // no flock of a lock is seen there: see TestFaultCommandBehindFUSE
			judged(t, nobody(), v.owner, "unproven gone pid-gone unknown", byNobody, why)
			return
		}
		judged(t, nobody(), v.owner, "stale gone pid-gone released", byLifetime)
		inherited(t, nobody(), v.owner, heirlock.Options{Policy: heirlock.ReclaimStale}, "pid-gone released")
	})
}

func onFUSE(t *testing.T, path string) bool {
	d, err := heirlock.Inspect(path, heirlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d.Filesystem.Type == "fuse"
}

// The owner lives in another PID namespace behind the other view: neither instrument reaches it, alive or dead.
func TestFaultContainerBehindOtherView(t *testing.T) {
	views(t, func(t *testing.T, v view) {
		owner := agentIn(t, container(t)...)
		owner.own(t, v.owner, heirlock.Options{})
		judged(t, nobody(), v.contender, "unproven not-probed unavailable unknown", byNobody)
		owner.die(t)
		judged(t, nobody(), v.contender, "unproven not-probed unavailable unknown", byNobody)
	})
}

// Through one and the same view the witness works on every filesystem that grants it.
//
//	wrapper:  takes, hands on ── SIGKILL
//	command:                     ───────────────── ends
//	taker:                         refused by all        inherits
func TestFaultCommandBehindSameView(t *testing.T) {
	mounts := map[string]func(*testing.T) string{
		"overlay": func(t *testing.T) string { dir, _ := mountOverlay(t, t.TempDir()); return dir },
		"tmpfs":   func(t *testing.T) string { return mountTmpfs(t) },
	}
	for name, mount := range mounts {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(mount(t), "x.lock")
			wrapper := agentIn(t)
			command := handOn(t, wrapper, path)
			judged(t, nobody(), path, "held alive matched held", byNobody)
			wrapper.die(t)
			judged(t, nobody(), path, "held gone pid-gone held", byNobody)
			command.end(t)
			judged(t, nobody(), path, "stale gone pid-gone released", byLifetime)
			inherited(t, nobody(), path, heirlock.Options{Policy: heirlock.ReclaimStale}, "pid-gone released")
		})
	}
}

// A bind mount is another way to the same inode of the same filesystem: the same view.
func TestFaultOwnerBehindBindMount(t *testing.T) {
	source := t.TempDir()
	path := filepath.Join(mounted(t, "--bind", source), "x.lock")
	owner := agentIn(t, container(t)...)
	owner.own(t, filepath.Join(source, "x.lock"), heirlock.Options{})
	judged(t, nobody(), path, "held not-probed unavailable held", byNobody)
	owner.die(t)
	judged(t, nobody(), path, "unproven not-probed unavailable released", byWitness)
	inherited(t, nobody(), path, heirlock.Options{Policy: heirlock.ReclaimReleased}, "unavailable released")
}
