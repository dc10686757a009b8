package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// scenario is one row. Its play decides what happened; want is what heirlock owes, and a deviation fails the run.
type scenario struct {
	key, title string
	text       string // what is done, for the table
	play       func(s *stage) (outcome, error)
	want       string
	but        map[string]string // of a heirlock form that owes something else
}

func scenarios() []scenario {
	return append(append(append(lifeScenarios(), worldScenarios()...), mountScenarios()...), fileScenarios()...)
}

// owes is what a form of heirlock must do.
func (sc *scenario) owes(name string) string {
	if w, ok := sc.but[name]; ok {
		return w
	}
	return sc.want
}

// deviates reports whether an outcome is not what is owed. A dead owner that is refused is called wedged for everybody;
// where the evidence does not reach, heirlock owes exactly that.
func (sc *scenario) deviates(name string, o outcome) bool {
	if o.Word == notRun || o.Word == absent {
		return false
	}
	return o.Word != sc.owes(name) || o.Waits
}

func lifeScenarios() []scenario {
	return []scenario{
		{"killed", "SIGKILL", "The owner and all it started are killed and reaped.", killed, recovers, nil},
		{"reused", "pid reused", "The owner is killed, and an unrelated process gets the number that the lock names.", reused, recovers, nil},
		{"zombie", "zombie", "The owner is killed, and its parent does not reap it.", zombie, recovers, nil},
		{"leader", "leader exited", "The owner's first thread has ended by exit(2), another works on: /proc says Z.", leader, refuses, nil},
		{"stopped", "stopped", "The owner is stopped for longer than any threshold of its locker.", stopped, refuses, nil},
		{"boot", "earlier boot", "What an owner of an earlier boot left, naming a number that a live process has now.", earlierBoot, recovers, nil},
		{"wrapper", "wrapper killed", "The process that took the lock is killed, the command that it runs works on.", wrapperKilled, refuses, nil},
		{"daemon", "daemon left behind", "The command has ended and left a daemon that inherited what it could.", daemonLeft, recovers,
			map[string]string{"heirlock exec": wedges}},
		{"racers", "64 racers", "64 processes go for the lock of a dead owner at once, each in a critical section that notices another.", racers, recovers, nil},
		{"delayed", "two takers, one delayed", "One taker of a dead owner's lock is held up for two seconds before each of its unlink and rmdir calls (strace), another tries meanwhile.", delayed, recovers, nil},
	}
}

func killed(s *stage) (outcome, error) {
	c, pid, err := s.owned()
	if err != nil {
		return outcome{}, err
	}
	if err := c.kill(true); err != nil {
		return outcome{}, err
	}
	return s.dead(pid)
}

// owned is an owner at the stage's path, and the number that its lock names.
func (s *stage) owned(prefix ...string) (*crew, int, error) {
	c, err := s.owner(s.path, ":work", prefix...)
	if err != nil {
		return nil, 0, err
	}
	return c, s.recordedPID(s.path, c), nil
}

func reused(s *stage) (outcome, error) {
	c, pid, err := s.owned()
	if err != nil {
		return outcome{}, err
	}
	if err := c.kill(true); err != nil {
		return outcome{}, err
	}
	stranger, err := startAs(pid, []string{"sleep", "600"})
	if err != nil {
		return outcome{}, err
	}
	s.later(func() { _ = stranger.Process.Kill(); _ = stranger.Wait() })
	return s.dead(pid)
}

func zombie(s *stage) (outcome, error) {
	c, pid, err := s.owned()
	if err != nil {
		return outcome{}, err
	}
	if err := c.kill(false); err != nil {
		return outcome{}, err
	}
	if state := stateOf(c.cmd.Process.Pid); state != "Z" {
		return outcome{}, fmt.Errorf("process %d is in state %q, not a zombie", c.cmd.Process.Pid, state)
	}
	return s.dead(pid)
}

func leader(s *stage) (outcome, error) { return s.live(s.path, s.path, ":leaderless") }

// live judges one attempt beside a live owner.
func (s *stage) live(ownerPath, path, role string, prefix ...string) (outcome, error) {
	c, err := s.owner(ownerPath, role)
	if err != nil {
		return outcome{}, err
	}
	a, err := s.contend(path, prefix...)
	if err != nil {
		return outcome{}, err
	}
	return ofLive(c, s.recordedPID(ownerPath, c), a)
}

func stopped(s *stage) (outcome, error) { return s.stoppedAt(s.path, s.path) }

func (s *stage) stoppedAt(ownerPath, path string) (outcome, error) {
	c, err := s.owner(ownerPath, ":work")
	if err != nil {
		return outcome{}, err
	}
	pid := s.recordedPID(ownerPath, c)
	c.signal(syscall.SIGSTOP)
	for end := time.Now().Add(patience); stateOf(c.worker().pid) != "T"; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return outcome{}, errors.New("the owner does not stop")
		}
	}
	a, err := s.contendAged(ownerPath, path)
	if err != nil {
		return outcome{}, err
	}
	return ofLive(c, pid, a)
}

func earlierBoot(s *stage) (outcome, error) {
	c, pid, err := s.owned()
	if err != nil {
		return outcome{}, err
	}
	if err := c.kill(true); err != nil {
		return outcome{}, err
	}
	if s.plant != nil {
		if err := s.plant(s.onDisk(s.path), pid, os.Getpid()); err != nil {
			return outcome{}, err
		}
	}
	return s.dead(os.Getpid())
}

func wrapperKilled(s *stage) (outcome, error) {
	c, err := s.owner(s.path, ":work")
	if err != nil {
		return outcome{}, err
	}
	if len(c.chain) < 2 {
		return outcome{Word: absent, Note: "one process: it becomes the command, or is it"}, nil
	}
	pid := s.recordedPID(s.path, c)
	if err := c.cmd.Process.Kill(); err != nil {
		return outcome{}, err
	}
	c.reap()
	a, err := s.contend(s.path)
	if err != nil {
		return outcome{}, err
	}
	o, err := ofLive(c, pid, a)
	if err != nil || a.in || s.age == 0 {
		return o, err
	}
	if a, err = s.contendAged(s.path, s.path); err == nil && a.in { // nobody refreshes it any more
		o, err = ofLive(c, pid, a)
		o.Note = "after " + s.age.String()
	}
	return o, err
}

func daemonLeft(s *stage) (outcome, error) {
	c, err := s.start(s.hold(s.path, []string{s.self, ":daemon"}), nil)
	if err != nil {
		return outcome{}, err
	}
	text, err := c.await("LEFT", 3*patience)
	if err != nil {
		return outcome{}, err
	}
	var pid int
	if _, err := fmt.Sscan(text, &pid); err != nil {
		return outcome{}, err
	}
	s.later(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	c.reap()
	a, err := s.contend(s.path)
	if err != nil {
		return outcome{}, err
	}
	if !exists(pid) {
		return outcome{}, errors.New("the daemon has ended by itself")
	}
	return ofDead(pid, a), nil
}

// leaveDead leaves the lock of an owner that was killed, as old as its locker wants a dead one to be.
func (s *stage) leaveDead(path string) error {
	c, err := s.owner(path, ":work")
	if err != nil {
		return err
	}
	if err := c.kill(true); err != nil {
		return err
	}
	if s.age > 0 {
		return s.grow(path)
	}
	return nil
}

func shellIn(script string) error {
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		return notHere(strings.TrimSpace(string(out)))
	}
	return nil
}
