package main

import (
	"os"
	"path/filepath"
	"time"
)

// Rows about namespaces, machines and users.

const released = "heirlock run, released"

func worldScenarios() []scenario {
	witnessed := map[string]string{released: recovers}
	return []scenario{
		{"ns-alive", "other namespace, alive", "The owner works in a container, under a number that nobody has out here.", namespaceAlive, refuses, nil},
		{"ns-killed", "other namespace, killed", "The same owner is killed; the contender is outside.", namespaceKilled, wedges, witnessed},
		{"restarted", "container restarted", "The owner was process 1 of a container and is killed; the contender is process 1 of the next one, same volume, same host name.", restarted, wedges, witnessed},
		{"sibling", "live sibling container", "The owner is process 1 of a container; the contender is process 1 of another, same volume, same host name.", sibling, refuses, nil},
		{"renamed", "renamed host", "The owner is killed; the host has another name when the contender comes.", renamed, recovers, nil},
		{"bootid-alive", "boot id overmounted, alive", "The owner works where a container manager has bound its own file over the boot id.", overmountedAlive, refuses, nil},
		{"bootid-killed", "boot id overmounted, killed", "The same owner is killed.", overmountedKilled, wedges, nil},
		{"bootid-taker", "taker's boot id overmounted", "The owner works; the contender sees a boot id of its container's own.", overmountedTaker, refuses, nil},
		{"hidden", "hidden procfs", "The owner works; the contender is another user, and its /proc hides others' processes (hidepid=2).", hidden, refuses, nil},
		{"user", "other user", "The owner works; the contender is another user, who may write the directory and the lock.", otherUser, refuses, nil},
	}
}

func (s *stage) inNumbered() (*crew, int, error) {
	n := freeNumber()
	prefix, err := numbered(n)
	if err != nil {
		return nil, 0, err
	}
	c, err := s.owner(s.path, ":work", prefix...)
	return c, n, err
}

func namespaceAlive(s *stage) (outcome, error) {
	c, n, err := s.inNumbered()
	if err != nil {
		return outcome{}, err
	}
	a, err := s.contend(s.path)
	if err != nil {
		return outcome{}, err
	}
	return ofLive(c, s.nameOr(s.path, n), a)
}

// nameOr is the number that the lock names, or another guess.
func (s *stage) nameOr(path string, n int) int {
	if s.recorded != nil {
		if pid := s.recorded(path); pid != 0 {
			return pid
		}
	}
	return n
}

func namespaceKilled(s *stage) (outcome, error) {
	c, n, err := s.inNumbered()
	if err != nil {
		return outcome{}, err
	}
	n = s.nameOr(s.path, n)
	if err := c.kill(true); err != nil {
		return outcome{}, err
	}
	return s.dead(n)
}

func restarted(s *stage) (outcome, error) {
	prefix, err := container()
	if err != nil {
		return outcome{}, err
	}
	c, err := s.owner(s.path, ":work", prefix...)
	if err != nil {
		return outcome{}, err
	}
	if err := c.kill(true); err != nil {
		return outcome{}, err
	}
	return s.dead(1, prefix...)
}

func sibling(s *stage) (outcome, error) {
	prefix, err := container()
	if err != nil {
		return outcome{}, err
	}
	c, err := s.owner(s.path, ":work", prefix...)
	if err != nil {
		return outcome{}, err
	}
	a, err := s.contend(s.path, prefix...)
	if err != nil {
		return outcome{}, err
	}
	return ofLive(c, 1, a)
}

func renamed(s *stage) (outcome, error) {
	if err := havePrograms("unshare", "hostname"); err != nil {
		return outcome{}, err
	}
	c, pid, err := s.owned()
	if err != nil {
		return outcome{}, err
	}
	if err := c.kill(true); err != nil {
		return outcome{}, err
	}
	return s.dead(pid, arranged("hostname renamed.example")...)
}

// bootOver is a prefix under which another file lies over the kernel's boot id.
func (s *stage) bootOver() ([]string, error) {
	file := filepath.Join(s.dir, "boot_id")
	if err := os.WriteFile(file, []byte(otherBoot+"\n"), 0o644); err != nil {
		return nil, err
	}
	return arranged("mount --bind " + file + " /proc/sys/kernel/random/boot_id"), havePrograms("unshare")
}

func overmountedAlive(s *stage) (outcome, error) {
	prefix, err := s.bootOver()
	if err != nil {
		return outcome{}, err
	}
	c, pid, err := s.owned(prefix...)
	if err != nil {
		return outcome{}, err
	}
	a, err := s.contend(s.path)
	if err != nil {
		return outcome{}, err
	}
	return ofLive(c, pid, a)
}

func overmountedKilled(s *stage) (outcome, error) {
	prefix, err := s.bootOver()
	if err != nil {
		return outcome{}, err
	}
	c, pid, err := s.owned(prefix...)
	if err != nil {
		return outcome{}, err
	}
	if err := c.kill(true); err != nil {
		return outcome{}, err
	}
	return s.dead(pid)
}

func overmountedTaker(s *stage) (outcome, error) {
	prefix, err := s.bootOver()
	if err != nil {
		return outcome{}, err
	}
	return s.live(s.path, s.path, ":work", prefix...)
}

// stranger is a prefix: the user 65534.
func stranger() ([]string, error) {
	return []string{"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"}, havePrograms("setpriv", "unshare")
}

func (s *stage) asStranger(before ...string) (outcome, error) {
	who, err := stranger()
	if err != nil {
		return outcome{}, err
	}
	c, pid, err := s.owned()
	if err != nil {
		return outcome{}, err
	}
	if err := os.Chmod(s.onDisk(s.path), 0o666); err != nil && !os.IsNotExist(err) {
		return outcome{}, err
	}
	a, err := s.contendFor(s.path, s.limit()+time.Second, append(before, who...)...)
	if err != nil {
		return outcome{}, err
	}
	return ofLive(c, pid, a)
}

func hidden(s *stage) (outcome, error) {
	return s.asStranger(arranged("mount -t proc -o hidepid=2 proc /proc")...)
}

func otherUser(s *stage) (outcome, error) { return s.asStranger() }
