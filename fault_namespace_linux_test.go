package heirlock_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/heirlock/heirlock"
	"github.com/heirlock/heirlock/process"
)

// namespacesOf is how a record names the namespaces of a process.
func namespacesOf(t testing.TB, pid int) string {
	t.Helper()
	text, err := process.Namespaces(pid)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The owner lives in a container. Its number means nothing elsewhere, so its lifetime cannot be asked: while it lives
// every policy refuses, and after its death only the witness speaks, under the policy that listens to it.
//
//	owner, container 1:  takes ─────────────── SIGKILL
//	host:                      refused by all           refused by stale, inherits by released
//	sibling, container 2:      refused by all           refused by stale, inherits by released
func TestFaultOwnerInOtherPIDNamespace(t *testing.T) {
	sibling := agentIn(t, container(t)...)
	for name, who := range map[string]*agent{"host": nobody(), "sibling": sibling} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.lock")
			owner := agentIn(t, container(t)...)
			owner.own(t, path, heirlock.Options{})
			recorded, here := namespacesOf(t, owner.host), namespacesOf(t, os.Getpid())
			if who != nil {
				here = namespacesOf(t, who.host)
			}
			differ := "recorded " + recorded + ", here " + here
			judged(t, who, path, "held not-probed unavailable held", byNobody, differ)
			owner.die(t)
			judged(t, who, path, "unproven not-probed unavailable released", byWitness, differ)
			inherited(t, who, path, heirlock.Options{Policy: heirlock.ReclaimReleased}, "unavailable released")
		})
	}
}

// The wrapper in a container is killed, its command goes on: the kernel still holds the witness, and no policy takes
// the lock before the command has ended.
//
//	wrapper, container:  takes, hands on ── SIGKILL
//	command, container:                     ──────────────── ends
//	host:                                   refused by all         inherits by released
func TestFaultWrapperInOtherPIDNamespace(t *testing.T) {
	needs(t, "nsenter")
	path := filepath.Join(t.TempDir(), "x.lock")
	first := agentIn(t, container(t)...)
	wrapper := agentIn(t, "nsenter", "--target", strconv.Itoa(first.host), "--pid", "--mount")
	command := handOn(t, wrapper, path)
	wrapper.die(t)
	judged(t, nobody(), path, "held not-probed unavailable held", byNobody)
	judged(t, first, path, "held gone pid-gone held", byNobody, "still held")
	command.end(t)
	judged(t, nobody(), path, "unproven not-probed unavailable released", byWitness)
	judged(t, first, path, "stale gone pid-gone released", byLifetime)
	inherited(t, nobody(), path, heirlock.Options{Policy: heirlock.ReclaimReleased}, "unavailable released")
}

// The owner became another program (exec), in a container. What its descriptor says is about that program and everything
// that it started, and is no proof about the owner: nobody takes the lock from outside.
func TestFaultExecInOtherPIDNamespace(t *testing.T) {
	program := compiled(t, leaderless)
	for _, with := range []string{"true", "false"} {
		t.Run("handOn="+with, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.lock")
			owner := agentIn(t, container(t)...)
			owner.say(fmt.Sprintf(`{"Do":"exec","Path":%q,"Opts":{"HandOn":%s},"Argv":[%q]}`, path, with, program))
			owner.expect("leaderless")
			alive, dead := "held not-probed unavailable held", "unproven not-probed unavailable released"
			if with == "false" {
				alive, dead = "unproven not-probed unavailable unknown", "unproven not-probed unavailable unknown"
			}
			judged(t, nobody(), path, alive, byNobody)
			owner.die(t)
			judged(t, nobody(), path, dead, byNobody)
		})
	}
}

// In a time namespace the same process has another start. The namespaces differ, and nobody compares.
//
//	owner, clock + 1 day:  takes ─────────────── SIGKILL
//	host:                        refused by all           refused by stale, inherits by released
func TestFaultOwnerInOtherTimeNamespace(t *testing.T) {
	needs(t, "unshare")
	if _, err := os.Stat("/proc/self/ns/time"); err != nil {
		t.Skip("needs time namespaces (Linux 5.6): ", err)
	}
	path := filepath.Join(t.TempDir(), "x.lock")
	owner := agentIn(t, "unshare", "--time", "--boottime", "86400", "--fork", "--kill-child")
	owner.own(t, path, heirlock.Options{})
	recorded, here := namespacesOf(t, owner.host), namespacesOf(t, os.Getpid())
	if recorded == here {
		t.Fatalf("the owner is in our own time namespace, %s", here)
	}
	differ := "recorded " + recorded + ", here " + here
	judged(t, nobody(), path, "held not-probed unavailable held", byNobody, differ)
	owner.die(t)
	judged(t, nobody(), path, "unproven not-probed unavailable released", byWitness, differ)
	inherited(t, nobody(), path, heirlock.Options{Policy: heirlock.ReclaimReleased}, "unavailable released")
}

// bootOver is a prefix under which something else lies over the kernel's boot id.
func bootOver(t testing.TB, source string) []string {
	return arranged(t, "mount --bind "+source+" /proc/sys/kernel/random/boot_id")
}

// invented is a boot id as a container manager makes one up.
func invented(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "boot_id")
	plant(t, path, otherBoot+"\n")
	return path
}

// overBoot are files that are no evidence about this boot, and what is said about each.
func overBoot(t testing.TB) map[string][2]string {
	return map[string][2]string{
		"per-container file": {invented(t), "does not lie on procfs"},
		"changes each read":  {"/proc/sys/kernel/random/uuid", "changes from one read to the next"},
	}
}

// The owner saw a boot id that is not the kernel's: it measured no instance, and nobody judges it gone, dead or alive.
// An operator who has made sure can still remove it.
//
//	owner, other boot id:  takes ──────────────── SIGKILL
//	host:                         refused by all           refused by all, reclaims by id
func TestFaultOwnerWithOvermountedBootID(t *testing.T) {
	for name, over := range overBoot(t) {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.lock")
			owner := agentIn(t, bootOver(t, over[0])...)
			owner.own(t, path, heirlock.Options{})
			judged(t, nobody(), path, "held not-probed unavailable held", byNobody, "null")
			owner.die(t)
			judged(t, nobody(), path, "unproven not-probed unavailable released", byNobody, "could not measure its own process instance")
			seen := nobody().ask(t, request{Do: "inspect", Path: path}).Seen
			if _, err := heirlock.Reclaim(path, seen.ID, heirlock.Options{}); err != nil {
				t.Error(err)
			}
			onlyFiles(t, filepath.Dir(path))
		})
	}
}

// The taker sees a boot id that is not the kernel's: it could not tell another boot from another file, and judges
// nobody gone.
//
//	owner:                 takes ──────────────── SIGKILL
//	taker, other boot id:         refused by all           refused by all
//	host:                                                                 inherits
func TestFaultTakerWithOvermountedBootID(t *testing.T) {
	for name, over := range overBoot(t) {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.lock")
			taker := agentIn(t, bootOver(t, over[0])...)
			owner := agentIn(t)
			owner.own(t, path, heirlock.Options{})
			judged(t, taker, path, "held not-probed unavailable held", byNobody, over[1])
			owner.die(t)
			judged(t, taker, path, "unproven not-probed unavailable released", byNobody, over[1])
			old := filepath.Join(t.TempDir(), "old.lock")
			plantRecord(t, old, onOtherBoot(t, generationOurs))
			judged(t, taker, old, "unproven not-probed unavailable released", byNobody, over[1])
			inherited(t, nobody(), path, heirlock.Options{Policy: heirlock.ReclaimStale}, "pid-gone released")
		})
	}
}

// The /proc that a process sees belongs to another PID namespace, and every number in it means something else. A
// process behind it records no instance, and judges nobody gone: not by an instance, not by a bare number.
func TestFaultForeignProc(t *testing.T) {
	needsInitialNamespace(t)
	needs(t, "unshare", "nsenter")
	inner := agentIn(t, container(t)...)
	behind := map[string][]string{
		"parent's proc in a child namespace": {"unshare", "--pid", "--fork", "--kill-child"},
		"child's proc in the parent":         {"nsenter", "--target", strconv.Itoa(inner.host), "--mount"},
	}
	for name, prefix := range behind {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, old, own := filepath.Join(dir, "x.lock"), filepath.Join(dir, "old.lock"), filepath.Join(t.TempDir(), "own.lock")
			who := agentOf(t, play(t, prefix, "agent"))
			owner := agentIn(t)
			owner.own(t, path, heirlock.Options{})
			plantRecord(t, old, recordOf(t, owner.host, generationLegacy))
			judged(t, who, path, "held not-probed unavailable held", byNobody, "could not measure itself")
			owner.die(t)
			judged(t, who, path, "unproven not-probed unavailable released", byNobody, "could not measure itself")
			judged(t, who, old, "unproven not-probed legacy unknown", byNobody, "could not measure itself")
			who.own(t, own, heirlock.Options{})
			judged(t, nobody(), own, "held not-probed unavailable held", byNobody, "null")
			who.die(t)
			judged(t, nobody(), own, "unproven not-probed unavailable released", byNobody)
		})
	}
}

// Behind a foreign /proc, a process may by chance have the number that it has there: everything it reads about itself
// is then about itself, and everything about others is not.
func TestFaultForeignProcWithOwnNumber(t *testing.T) {
	needs(t, "unshare")
	path, own := filepath.Join(t.TempDir(), "x.lock"), filepath.Join(t.TempDir(), "own.lock")
	who := agentOf(t, play(t, []string{"unshare", "--pid", "--fork", "--kill-child"}, "twin"))
	if who.pid != who.host {
		t.Fatalf("the agent is %d in its namespace and %d here", who.pid, who.host)
	}
	dead := idler(t)
	r := recordOf(t, dead.cmd.Process.Pid, generationOurs)
	instance := *r.Process
	instance.Namespace = namespacesOf(t, who.host)
	r.Process = &instance
	dead.kill()
	plantRecord(t, path, r)
	judged(t, who, path, "unproven not-probed unavailable released", byNobody, "another PID namespace")
	who.own(t, own, heirlock.Options{})
	judged(t, nobody(), own, "held not-probed unavailable held", byNobody, "null")
	who.ask(t, request{Do: "release", Path: own})
	onlyFiles(t, filepath.Dir(own))
}

// A legacy record does not say in which namespace its number lives. Its absence means something only in the first.
func TestFaultLegacyNumberFromAnotherNamespace(t *testing.T) {
	needsInitialNamespace(t)
	path := filepath.Join(t.TempDir(), "x.lock")
	who := agentIn(t, container(t)...)
	owner := idler(t)
	plantRecord(t, path, recordOf(t, owner.cmd.Process.Pid, generationLegacy))
	const unknowable = "unproven not-probed legacy unknown"
	why := fmt.Sprintf("does not say in which namespace process %d lives", owner.cmd.Process.Pid)
	judged(t, who, path, unknowable, byNobody, why)
	owner.kill()
	judged(t, who, path, unknowable, byNobody, why)
	judged(t, nobody(), path, "stale gone legacy unknown", byLifetime)
	inherited(t, nobody(), path, heirlock.Options{Policy: heirlock.ReclaimStale}, "legacy unknown")
}

// A number that no kernel of ours hands out cannot be asked; that is a refusal with its reason and never an error.
func TestFaultLegacyNumberTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	for _, pid := range []int64{1 << 31, 1 << 32, 1<<32 + 1, 1<<53 - 1} {
		r := recordOf(t, os.Getpid(), generationLegacy)
		r.PID = pid
		plantRecord(t, path, r)
		judged(t, nobody(), path, "unproven not-probed legacy unknown", byNobody, fmt.Sprintf("process number %d cannot be probed", pid))
	}
}
