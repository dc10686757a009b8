package heirlock_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heirlock/heirlock"
)

var generations = []string{generationOurs, generationModern, generationLegacy}

// witnessOf is what a planted record's free flock says: something only if heirlock wrote the record.
func witnessOf(generation, answer string) string {
	if generation == generationOurs {
		return answer
	}
	return "unknown"
}

// identityOf is the identity where an instance was compared: none was in a legacy record.
func identityOf(generation, answer string) string {
	if generation == generationLegacy {
		return "legacy"
	}
	return answer
}

// A process that a record of any generation names is alive, then dead.
//
//	owner:  runs ──────────────── SIGKILL, reaped
//	taker:         refused by all                  inherits
func TestFaultOwnerKilledInEveryGeneration(t *testing.T) {
	needsInitialNamespace(t)
	for _, generation := range generations {
		t.Run(generation, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.lock")
			owner := idler(t)
			plantRecord(t, path, recordOf(t, owner.cmd.Process.Pid, generation))
			judged(t, nobody(), path, "held alive "+identityOf(generation, "matched")+" "+witnessOf(generation, "released"), byNobody)
			owner.kill()
			identity := identityOf(generation, "pid-gone")
			judged(t, nobody(), path, "stale gone "+identity+" "+witnessOf(generation, "released"), byLifetime)
			inherited(t, nobody(), path, heirlock.Options{Policy: heirlock.ReclaimStale}, identity+" "+witnessOf(generation, "released"))
		})
	}
}

// The dead owner's number is given to a stranger. Start and pidfd id tell them apart; a record without either cannot,
// and refuses as long as the stranger lives.
//
//	owner (7):     takes ── SIGKILL, reaped
//	stranger (7):                            runs ──────────────
//	keeper (1):                                    inherits
func TestFaultNumberReusedByStranger(t *testing.T) {
	needs(t, "unshare", "nsenter")
	if _, err := os.Stat("/proc/sys/kernel/ns_last_pid"); err != nil {
		t.Skip("needs CONFIG_CHECKPOINT_RESTORE: ", err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "x.lock")
	keeper := agentIn(t, container(t)...)
	owner := agentIn(t, "nsenter", "--target", strconv.Itoa(keeper.host), "--pid", "--mount")
	owner.own(t, path, heirlock.Options{})
	judged(t, keeper, path, "held alive matched held", byNobody)
	owner.die(t)
	keeper.ask(t, request{Do: "reuse", PID: owner.pid, Argv: []string{"sleep", "1000"}})
	judged(t, keeper, path, "stale gone reused-pid released", byLifetime)
	inherited(t, keeper, path, heirlock.Options{Policy: heirlock.ReclaimStale}, "reused-pid released")

	old := filepath.Join(t.TempDir(), "old.lock")
	r := recordOf(t, os.Getpid(), generationLegacy)
	r.PID = int64(owner.pid)
	plantRecord(t, old, r)
	judged(t, keeper, old, "held alive legacy unknown", byNobody, "a live stranger under its number cannot be told from the owner")
}

// Two processes with one number within one clock tick have equal starts; only their pidfd ids differ. And the other way
// round: one pidfd id with two starts is a contradiction, not a proof.
func TestFaultPidfdIDTellsWhatTheStartDoesNot(t *testing.T) {
	dir := t.TempDir()
	stranger := idler(t)
	r := recordOf(t, stranger.cmd.Process.Pid, generationOurs)
	if r.Evidence.PidfdID == "" {
		t.Skip("needs pidfs (Linux 6.9)")
	}
	path := filepath.Join(dir, "x.lock")
	contradiction := r
	start := *r.Process
	start.StartID += "0"
	contradiction.Process = &start
	plantRecord(t, path, contradiction)
	judged(t, nobody(), path, "unproven not-probed unavailable released", byNobody, "contradiction")

	r.Evidence.PidfdID += "0"
	plantRecord(t, path, r)
	judged(t, nobody(), path, "stale gone reused-pid released", byLifetime)
	inherited(t, nobody(), path, heirlock.Options{Policy: heirlock.ReclaimStale}, "reused-pid released")
}

// The owner is dead and its parent never waits for it: all its threads have exited, and the number is still taken.
//
//	owner:   takes ── SIGKILL ── zombie ──────────
//	taker:                               inherits
func TestFaultUnreapedZombieIsGone(t *testing.T) {
	for _, generation := range generations {
		t.Run(generation, func(t *testing.T) {
			needsInitialNamespace(t)
			path := filepath.Join(t.TempDir(), "x.lock")
			zombie, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, &os.ProcAttr{})
			if err != nil {
				t.Fatal(err)
			}
			defer zombie.Wait()
			plantRecord(t, path, recordOf(t, zombie.Pid, generation))
			zombie.Kill()
			if err := unix.Waitid(unix.P_PID, zombie.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
				t.Fatal(err)
			}
			want := identityOf(generation, "pid-gone") + " " + witnessOf(generation, "released")
			judged(t, nobody(), path, "stale gone "+want, byLifetime, "all its threads have exited")
			blind := agentIn(t, compiled(t, denying), strconv.Itoa(int(syscall.EPERM)))
			judged(t, blind, path, "stale gone "+want, byLifetime, "all its threads have exited")
			inherited(t, blind, path, heirlock.Options{Policy: heirlock.ReclaimStale}, want)
		})
	}
}

// A thread-group leader that left by pthread_exit is a zombie by its stat line, while its second thread works under
// the lock. It is alive, with a pidfd and without, whatever the generation of its record.
//
//	owner, thread 1:  main ── pthread_exit (state Z) ──────────────────
//	owner, thread 2:          works ──────────────────── ends
//	taker:                           refused by all           inherits
func TestFaultLeaderLeftByPthreadExitIsAlive(t *testing.T) {
	needsInitialNamespace(t)
	program, denier := compiled(t, leaderless), compiled(t, denying)
	for _, generation := range generations {
		t.Run(generation, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.lock")
			owner := launch(t, nil, []string{program})
			owner.expect("leaderless")
			plantRecord(t, path, recordOf(t, owner.cmd.Process.Pid, generation))
			blind := agentIn(t, denier, strconv.Itoa(int(syscall.EPERM)))
			alive := "held alive " + identityOf(generation, "matched") + " " + witnessOf(generation, "released")
			judged(t, nobody(), path, alive, byNobody)
			judged(t, blind, path, alive, byNobody)
			owner.wait()
			want := identityOf(generation, "pid-gone") + " " + witnessOf(generation, "released")
			judged(t, blind, path, "stale gone "+want, byLifetime)
			inherited(t, nobody(), path, heirlock.Options{Policy: heirlock.ReclaimStale}, want)
		})
	}
}

// The same with a lock that the program really owns: its process took it and then became the program, which does not
// know about the lock (exec) or holds its descriptor (exec with HandOn).
func TestFaultOwnerBecomesAnotherProgram(t *testing.T) {
	program := compiled(t, leaderless)
	for handOn, witness := range map[bool][2]string{false: {"unknown", "unknown"}, true: {"held", "released"}} {
		t.Run(fmt.Sprintf("handOn=%v", handOn), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.lock")
			owner := agentIn(t)
			text := fmt.Sprintf(`{"Do":"exec","Path":%q,"Opts":{"HandOn":%v},"Argv":[%q]}`, path, handOn, program)
			owner.say(text)
			owner.expect("leaderless")
			judged(t, nobody(), path, "held alive matched "+witness[0], byNobody)
			owner.die(t)
			judged(t, nobody(), path, "stale gone pid-gone "+witness[1], byLifetime)
			inherited(t, nobody(), path, heirlock.Options{Policy: heirlock.ReclaimStale}, "pid-gone "+witness[1])
		})
	}
}

// Stopped is not gone, and the age of a file proves nothing.
//
//	owner:  takes ── SIGSTOP ── (1970) ──────────────── SIGCONT, releases
//	taker:                               refused by all
func TestFaultStoppedOwnerWithOldFileHolds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	owner := agentIn(t)
	owner.own(t, path, heirlock.Options{})
	if err := unix.PidfdSendSignal(owner.pidfd, unix.SIGSTOP, nil, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Wait4(owner.host, nil, unix.WUNTRACED, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Unix(0, 0), time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	judged(t, nobody(), path, "held alive matched held", byNobody)
	if err := unix.PidfdSendSignal(owner.pidfd, unix.SIGCONT, nil, 0); err != nil {
		t.Fatal(err)
	}
	owner.ask(t, request{Do: "release", Path: path})
	onlyFiles(t, filepath.Dir(path))
}

// A number that belongs to a thread leads no process: its owner is gone, however alive the thread is.
func TestFaultThreadNumberIsNoProcess(t *testing.T) {
	needsInitialNamespace(t)
	owner := agentIn(t) // a Go program has threads
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", owner.host))
	if err != nil || len(tasks) < 2 {
		t.Fatalf("%d threads, %v; want two", len(tasks), err)
	}
	thread, err := strconv.Atoi(tasks[len(tasks)-1].Name())
	if err != nil || thread == owner.host {
		t.Fatal(thread, err)
	}
	blind := agentIn(t, compiled(t, denying), strconv.Itoa(int(syscall.ENOSYS)))
	for _, generation := range generations {
		for name, who := range map[string]*agent{"pidfd": nobody(), "no pidfd": blind} {
			t.Run(generation+", "+name, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "x.lock")
				r := recordOf(t, owner.host, generation)
				if r.PID = int64(thread); r.Process != nil {
					r.Process.PID = thread
				}
				plantRecord(t, path, r)
				want := identityOf(generation, "pid-gone") + " " + witnessOf(generation, "released")
				judged(t, who, path, "stale gone "+want, byLifetime, "no process has this number")
				inherited(t, who, path, heirlock.Options{Policy: heirlock.ReclaimStale}, want)
			})
		}
	}
}
