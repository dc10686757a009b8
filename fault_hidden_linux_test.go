package heirlock_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/heirlock/heirlock"
)

// Everything that may stand between a contender and a process that it is to judge, alone and together.

// stranger is a prefix: another user, without any right over a process of root. It runs a copy of this test binary,
// because the go command keeps the original where only its own user may go.
func stranger(t testing.TB) []string {
	t.Helper()
	needs(t, "setpriv")
	return []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
}

// playPublic is play, with the test binary in a place that every user can reach.
func playPublic(t testing.TB, prefix []string) *agent {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(publicDir(t), filepath.Base(self))
	if err := os.Link(self, program); err != nil {
		shell(t, "cp", self, program)
	}
	return agentOf(t, launch(t, append([]string{roleVariable + "=agent"}, os.Environ()...), append(prefix, program)))
}

// contenders are the ways to look at a process of root.
func contenders(t *testing.T) map[string]*agent {
	t.Helper()
	needs(t, "unshare")
	denier := compiled(t, denying)
	deny := func(errno syscall.Errno, prefix ...string) []string {
		return append([]string{denier, strconv.Itoa(int(errno))}, prefix...)
	}
	hidden := func(then ...string) []string {
		return append(arranged(t, "mount -t proc -o hidepid=2 proc /proc"), then...)
	}
	prefixes := map[string][]string{
		"other user":                          stranger(t),
		"hidepid":                             hidden(stranger(t)...),
		"seccomp EPERM":                       deny(syscall.EPERM),
		"seccomp ENOSYS":                      deny(syscall.ENOSYS),
		"seccomp ESRCH":                       deny(syscall.ESRCH),
		"seccomp EINVAL":                      deny(syscall.EINVAL),
		"seccomp EPERM, other user":           deny(syscall.EPERM, stranger(t)...),
		"seccomp ENOSYS, other user":          deny(syscall.ENOSYS, stranger(t)...),
		"seccomp EPERM, other user, hidepid":  hidden(deny(syscall.EPERM, stranger(t)...)...),
		"seccomp ENOSYS, other user, hidepid": hidden(deny(syscall.ENOSYS, stranger(t)...)...),
		"seccomp ESRCH, other user, hidepid":  hidden(deny(syscall.ESRCH, stranger(t)...)...),
		"seccomp ENOENT, other user, hidepid": hidden(deny(syscall.ENOENT, stranger(t)...)...),
	}
	agents := map[string]*agent{}
	for name, prefix := range prefixes {
		agents[name] = playPublic(t, prefix)
	}
	return agents
}

// A live owner is never judged gone because it cannot be seen: not by another user, not under hidepid, not where
// pidfd_open is forbidden. Where its start can be read it is matched, else unproven. A dead one is proven gone all
// the same, because the kernel still says that nobody has its number.
//
//	owner, root:  runs ──────────────── SIGKILL, reaped
//	contender:          refused by all                  inherits
func TestFaultHiddenOwner(t *testing.T) {
	needsInitialNamespace(t)
	for name, who := range contenders(t) {
		for _, generation := range generations {
			t.Run(name+", "+generation, func(t *testing.T) {
				dir := publicDir(t)
				if err := os.Chmod(dir, 0o777); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(dir, "x.lock")
				owner := idler(t)
				plantRecord(t, path, recordOf(t, owner.cmd.Process.Pid, generation))
				if err := os.Chmod(path, 0o644); err != nil {
					t.Fatal(err)
				}
				alive := "held alive matched "
				if generation == generationLegacy {
					alive = "held alive legacy "
				} else if strings.Contains(name, "hidepid") {
					alive = "unproven not-probed unavailable "
				}
				judged(t, who, path, alive+witnessOf(generation, "released"), byNobody)
				owner.kill()
				want := identityOf(generation, "pid-gone") + " " + witnessOf(generation, "released")
				judged(t, who, path, "stale gone "+want, byLifetime, "no process has this number")
				inherited(t, who, path, heirlock.Options{Policy: heirlock.ReclaimStale}, want)
			})
		}
	}
}

// A record that the contender may not read is an observation with its cause: no owner is named, nothing is removed,
// although the directory would let the contender remove it.
func TestFaultUnreadableRecord(t *testing.T) {
	who := playPublic(t, stranger(t))
	dir := publicDir(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "x.lock")
	owner := agentIn(t)
	owner.own(t, path, heirlock.Options{})
	judged(t, who, path, "unproven not-probed - unknown", byNobody, "permission denied")
	owner.die(t)
	judged(t, who, path, "unproven not-probed - unknown", byNobody, "permission denied")
	inherited(t, nobody(), path, heirlock.Options{Policy: heirlock.ReclaimStale}, "pid-gone released")
}

// The owner could not open a pidfd of itself, and recorded no id of it: its start decides alone.
func TestFaultOwnerWithoutPidfd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	owner := agentIn(t, compiled(t, denying), strconv.Itoa(int(syscall.EPERM)))
	owner.own(t, path, heirlock.Options{})
	judged(t, nobody(), path, "held alive matched held", byNobody, "pidfd id: recorded none")
	owner.die(t)
	judged(t, nobody(), path, "stale gone pid-gone released", byLifetime)
	inherited(t, nobody(), path, heirlock.Options{Policy: heirlock.ReclaimStale}, "pid-gone released")
}

// Where there is no /proc at all, a lock is still born, for root and for a user who cannot link an unnamed file without
// /proc. Nobody is judged gone from there, nor is who took a lock there.
func TestFaultNoProc(t *testing.T) {
	noProc := arranged(t, "mount -t tmpfs none /proc")
	for name, who := range map[string]*agent{
		"root":       playPublic(t, noProc),
		"other user": playPublic(t, append(noProc, stranger(t)...)),
	} {
		t.Run(name, func(t *testing.T) {
			dir := publicDir(t)
			if err := os.Chmod(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			path, old := filepath.Join(dir, "x.lock"), filepath.Join(dir, "old.lock")
			who.own(t, path, heirlock.Options{Mode: 0o644})
			onlyFiles(t, dir, "x.lock")
			judged(t, nobody(), path, "held not-probed unavailable held", byNobody, "null")
			who.ask(t, request{Do: "release", Path: path})
			onlyFiles(t, dir)
			dead := idler(t)
			plantRecord(t, path, recordOf(t, dead.cmd.Process.Pid, generationOurs))
			plantRecord(t, old, recordOf(t, dead.cmd.Process.Pid, generationLegacy))
			dead.kill()
			shell(t, "chmod", "0644", path, old)
			judged(t, who, path, "unproven not-probed unavailable released", byNobody, "could not measure itself")
			judged(t, who, old, "unproven not-probed legacy unknown", byNobody, "could not measure itself")
		})
	}
}
