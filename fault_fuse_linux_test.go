package heirlock_test

import (
	"path/filepath"
	"testing"

	"github.com/heirlock/heirlock"
)

// Below FUSE the two names of a link are two inodes of the kernel with one inode number: the flock that the owner took
// before it linked its file is not seen through the lock's name. The record must not call it a witness; a wrapper that
// was killed while its command works is then not inherited from.
//
//	wrapper  bear .heirlock-…, flock, link x.lock ── killed
//	command                                         works …
//	taker                                                   flock of x.lock is free: proves nothing
func TestFaultCommandBehindFUSE(t *testing.T) {
	dir := mountFUSE(t, t.TempDir())
	path := filepath.Join(dir, "x.lock")
	wrapper := agentIn(t)
	command := handOn(t, wrapper, path)
	judged(t, nobody(), path, "held alive matched unknown", byNobody)
	wrapper.die(t)
	judged(t, nobody(), path, "unproven gone pid-gone unknown", byNobody)
	for _, policy := range []heirlock.Policy{heirlock.Refuse, heirlock.ReclaimStale, heirlock.ReclaimReleased} {
		if got := nobody().ask(t, request{Do: "take", Path: path, Opts: heirlock.Options{Policy: policy}}); got.Got != "" {
			t.Errorf("%s: two at work, inherited on %v while the command lives", policy, got.Inherited)
		}
	}
	command.end(t)
}

// A file of procfs itself, bound over the boot id, passes for it by its filesystem: the host name may be any text, a
// UUID too. It is told by being a mount point.
func TestFaultBootIDOvermountedFromProcfs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	owner := agentIn(t, container(t)...)
	taker := agentIn(t, arranged(t, "hostname "+otherBoot+" && mount --bind /proc/sys/kernel/hostname /proc/sys/kernel/random/boot_id")...)
	owner.own(t, path, heirlock.Options{})
	judged(t, taker, path, "held not-probed unavailable held", byNobody, "is itself a mount point")
}
