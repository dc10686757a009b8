package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// stage is where one scenario is played with one locker: a directory of its own, and everything to tidy at its end.
type stage struct {
	*locker
	dir, path string
	self      string
	undo      []func()
}

// notHere says that something is not to be had on this machine.
type notHere string

func (e notHere) Error() string { return string(e) }

// cannotLock says that a locker did not take a lock that nobody had.
type cannotLock string

func (e cannotLock) Error() string { return string(e) }

func (s *stage) later(f func()) { s.undo = append(s.undo, f) }

func (s *stage) close() {
	for i := len(s.undo) - 1; i >= 0; i-- {
		s.undo[i]()
	}
}

func (s *stage) start(argv, env []string) (*crew, error) {
	c, err := start(argv, env)
	if err == nil {
		s.later(c.close)
	}
	return c, err
}

const patience = 10 * time.Second

// owner starts an owner at a path, behind a prefix such as unshare(1), and returns when it is at work.
func (s *stage) owner(path, role string, prefix ...string) (*crew, error) {
	c, err := s.start(append(prefix, s.hold(path, []string{s.self, role})...), nil)
	if err != nil {
		return nil, err
	}
	if _, err := c.await("HELD", 3*patience); err != nil {
		if errors.Is(err, errHung) {
			return nil, fmt.Errorf("no owner: %w", err)
		}
		c.reap()
		return nil, cannotLock(fmt.Sprintf("exit status %d: %s", c.cmd.ProcessState.ExitCode(), c.words()))
	}
	return c, c.follow()
}

// contend makes one attempt. A contender that is let in stays inside.
func (s *stage) contend(path string, prefix ...string) (attempt, error) {
	return s.contendFor(path, s.limit(), prefix...)
}

// limit is how long an attempt may take: procmail's lockfile sleeps 16 s after it has removed an old lock.
func (s *stage) limit() time.Duration {
	if s.age == time.Minute {
		return 25 * time.Second
	}
	return patience
}

func (s *stage) contendFor(path string, limit time.Duration, prefix ...string) (attempt, error) {
	c, err := s.start(append(prefix, s.try(path, []string{s.self, ":got"})...), nil)
	if err != nil {
		return attempt{}, err
	}
	_, err = c.await("GOT", limit)
	a := attempt{crew: c, in: err == nil, hung: errors.Is(err, errHung)}
	if a.hung {
		c.close()
	}
	return a, nil
}

// dead judges the locker after its owner died. One that believes in age is asked again when enough of it has passed.
func (s *stage) dead(pid int, prefix ...string) (outcome, error) {
	a, err := s.contend(s.path, prefix...)
	if err != nil {
		return outcome{}, err
	}
	o := ofDead(pid, a)
	if o.Word != wedges || s.age == 0 {
		return o, nil
	}
	if a, err = s.contendAged(s.path, s.path, prefix...); a.in {
		o.Note = "until " + s.age.String() + " have passed"
	}
	return o, err
}

// contendAged makes two attempts on a lock that has become old. liblockfile takes it at the second one, once the first has
// read it.
func (s *stage) contendAged(ownerPath, path string, prefix ...string) (a attempt, err error) {
	if err = s.grow(ownerPath); err != nil {
		return
	}
	for range 2 {
		if a, err = s.contend(path, prefix...); err != nil || a.in {
			break
		}
	}
	return
}

// grow makes the lock as old as its locker's threshold, and a minute.
func (s *stage) grow(path string) error {
	old := time.Now().Add(-s.age - time.Minute)
	if s.age == 0 {
		old = old.Add(-time.Hour)
	}
	err := os.Chtimes(s.onDisk(path), old, old)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// container is a prefix: a PID and UTS namespace with its own /proc, and a host name that every one of them has.
func container() ([]string, error) {
	if err := havePrograms("unshare", "hostname"); err != nil {
		return nil, err
	}
	return []string{"unshare", "--pid", "--uts", "--fork", "--mount-proc", "--kill-child", "sh", "-c", `hostname twin && exec "$@"`, "sh"}, nil
}

// numbered is a container in which the program has this number; number 1 stays a shell.
func numbered(pid int) ([]string, error) {
	prefix, err := container()
	if err != nil {
		return nil, err
	}
	return append(prefix, "sh", "-c", `exec 3<&0; echo `+strconv.Itoa(pid-1)+` > /proc/sys/kernel/ns_last_pid; "$@" <&3 & wait`, "sh"), nil
}

// arranged is a prefix: a mount and UTS namespace, in which a line of shell runs first.
func arranged(script string) []string {
	return []string{"unshare", "--mount", "--uts", "sh", "-c", script + ` && exec "$@"`, "sh"}
}

func havePrograms(names ...string) error {
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			return notHere(name + " is not installed")
		}
	}
	return nil
}

// mount mounts something until the end of the stage.
func (s *stage) mount(name string, args ...string) (string, error) {
	dir := filepath.Join(s.dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	if out, err := exec.Command("mount", append(args, dir)...).CombinedOutput(); err != nil {
		return "", notHere(fmt.Sprintf("mount %v: %s", args, shorten(string(out), 80)))
	}
	s.later(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir, nil
}

// twice shows one directory through two mounts of a filesystem that does not carry flock from one to the other, as two
// machines see a network filesystem, or two containers a volume that each mounts itself.
func (s *stage) twice() (one, other string, err error) {
	if err := havePrograms("bindfs"); err != nil {
		return "", "", err
	}
	source := filepath.Join(s.dir, "source")
	if err := os.Mkdir(source, 0o777); err != nil {
		return "", "", err
	}
	for _, dir := range []*string{&one, &other} {
		if *dir, err = os.MkdirTemp(s.dir, "mount"); err != nil {
			return "", "", err
		}
		if out, err := exec.Command("bindfs", source, *dir).CombinedOutput(); err != nil {
			return "", "", notHere("bindfs: " + shorten(string(out), 80))
		}
		at := *dir
		s.later(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	}
	return filepath.Join(one, "lk"), filepath.Join(other, "lk"), nil
}
