package heirlock_test

import (
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heirlock/heirlock"
)

// command is what a wrapper runs: it holds a descriptor of the lock and works until it is told to end.
type command struct {
	pidfd, input int
}

// handOn has an agent take a lock and hand it on to a command.
func handOn(t testing.TB, wrapper *agent, path string) *command {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "input")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	wrapper.own(t, path, heirlock.Options{HandOn: true})
	wrapper.ask(t, request{Do: "start", Path: path, Argv: []string{"cat", fifo}})
	c := &command{openPidfd(t, childPID(t, wrapper.host)), -1}
	for end := time.Now().Add(time.Minute); c.input < 0; time.Sleep(time.Millisecond) { // until the command reads from it
		var err error
		c.input, err = unix.Open(fifo, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil && (err != unix.ENXIO || time.Now().After(end)) {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { unix.PidfdSendSignal(c.pidfd, unix.SIGKILL, nil, 0) })
	return c
}

// end ends the command's input, and waits until it has exited.
func (c *command) end(t testing.TB) {
	t.Helper()
	unix.Close(c.input)
	awaitEnd(t, c.pidfd)
}

// The wrapper is killed, its command works on. The recorded process is gone, and the kernel says that its lock is not.
//
//	wrapper:  takes, hands on ── SIGKILL
//	command:                     ───────────────── ends
//	taker:                         refused by all        inherits
func TestFaultWrapperKilledWhileCommandLives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	wrapper := agentIn(t)
	command := handOn(t, wrapper, path)
	judged(t, nobody(), path, "held alive matched held", byNobody)
	wrapper.die(t)
	judged(t, nobody(), path, "held gone pid-gone held", byNobody, "something that inherited it may still be at work")
	onlyFiles(t, filepath.Dir(path), "x.lock")
	if _, err := heirlock.Reclaim(path, "", heirlock.Options{}); err == nil {
		t.Error("reclaimed under a living command")
	}
	id := nobody().ask(t, request{Do: "inspect", Path: path}).Seen.ID
	if _, err := heirlock.Reclaim(path, id, heirlock.Options{}); err == nil {
		t.Error("reclaimed by its id under a living command")
	}
	onlyFiles(t, filepath.Dir(path), "x.lock")
	command.end(t)
	judged(t, nobody(), path, "stale gone pid-gone released", byLifetime)
	inherited(t, nobody(), path, heirlock.Options{Policy: heirlock.ReclaimStale}, "pid-gone released")
}

// A clean end takes the name away, whatever descendants still hold the descriptor: the next taker starts at once, on
// a file of its own.
//
//	wrapper:  takes, hands on ── releases
//	command:                     ─────────────────────
//	taker:                                takes
func TestFaultCleanReleaseUnderLivingCommand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	wrapper := agentIn(t)
	command := handOn(t, wrapper, path)
	wrapper.ask(t, request{Do: "release", Path: path})
	onlyFiles(t, filepath.Dir(path))
	nobody().own(t, path, heirlock.Options{})
	judged(t, agentIn(t), path, "held alive matched held", byNobody)
	command.end(t)
	nobody().ask(t, request{Do: "release", Path: path})
	onlyFiles(t, filepath.Dir(path))
}

// A held lock that the program forgot stays held: the collector closes nothing.
//
//	owner:  takes, forgets, collects twice ───────────── SIGKILL
//	taker:                                 refused by all          inherits
func TestFaultForgottenLockIsHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	owner := agentIn(t)
	owner.own(t, path, heirlock.Options{})
	owner.ask(t, request{Do: "forget"})
	judged(t, nobody(), path, "held alive matched held", byNobody)
	owner.die(t)
	inherited(t, nobody(), path, heirlock.Options{Policy: heirlock.ReclaimStale}, "pid-gone released")
}

// What a record says of its witness is what its owner does with the descriptor.
func TestFaultRecordedWitness(t *testing.T) {
	for _, row := range []struct {
		opts    heirlock.Options
		witness string
	}{
		{heirlock.Options{}, "flock"},
		{heirlock.Options{HandOn: true}, "flock+child"},
		{heirlock.Options{Exec: true}, ""},
		{heirlock.Options{Exec: true, HandOn: true}, "child"},
	} {
		path := filepath.Join(t.TempDir(), "x.lock")
		l, err := heirlock.TryAcquire(path, row.opts)
		if err != nil {
			t.Fatal(err)
		}
		d, err := heirlock.Inspect(path, heirlock.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if e := d.Owner.Evidence; e.Witness != row.witness || e.HandedOn != row.opts.HandOn {
			t.Errorf("%+v recorded witness %q, handed on %v; want %q", row.opts, e.Witness, e.HandedOn, row.witness)
		}
		if err := l.Release(); err != nil {
			t.Error(err)
		}
		onlyFiles(t, filepath.Dir(path))
	}
}

// Somebody holds the kernel lock of a dead owner's file, for whatever reason: nobody unlinks without it.
func TestFaultForeignFlockVetoes(t *testing.T) {
	needsInitialNamespace(t)
	for _, generation := range generations {
		t.Run(generation, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.lock")
			owner := idler(t)
			plantRecord(t, path, recordOf(t, owner.cmd.Process.Pid, generation))
			owner.kill()
			fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
				t.Fatal(err)
			}
			state, identity := "unproven", identityOf(generation, "pid-gone")
			if generation == generationOurs {
				state = "held"
			}
			judged(t, nobody(), path, state+" gone "+identity+" "+witnessOf(generation, "held"), byNobody)
			unix.Close(fd)
			inherited(t, nobody(), path, heirlock.Options{Policy: heirlock.ReclaimStale}, identity+" "+witnessOf(generation, "released"))
		})
	}
}
