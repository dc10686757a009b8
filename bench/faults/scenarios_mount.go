package main

import (
	"errors"
	"os"
)

// Rows behind two mounts that share files and not flock: what is left is the evidence about the process.

func mountScenarios() []scenario {
	handedOn := map[string]string{"heirlock run": wedges, released: wedges, "heirlock exec": wedges}
	return []scenario{
		{"twice-stopped", "second mount, stopped", "Two mounts of one directory that do not share flock (bindfs). The owner works through one and is stopped, its lock an hour old; the contender comes through the other.", twiceStopped, refuses, nil},
		{"twice-leader", "second mount, leader exited", "The same two mounts; the owner's first thread has ended, another works on.", twiceLeader, refuses, nil},
		{"twice-ns", "second mount, other namespace", "The same two mounts; the owner works in a container, under a number that nobody has out here.", twiceNamespace, refuses, nil},
		{"cloned", "cloned machine id", "The same two mounts, as two machines with one machine id see a network filesystem: the owner works under a number that nobody has here, and its record is of another boot.", cloned, refuses, nil},
		{"twice-delayed", "second mount, one taker delayed", "The same two mounts; one taker of a dead owner's lock is held up before each unlink, another tries through the other mount.", twiceDelayed, recovers, handedOn},
	}
}

func twiceStopped(s *stage) (outcome, error) {
	one, other, err := s.twice()
	if err != nil {
		return outcome{}, err
	}
	return s.stoppedAt(one, other)
}

func twiceLeader(s *stage) (outcome, error) {
	one, other, err := s.twice()
	if err != nil {
		return outcome{}, err
	}
	return s.live(one, other, ":leaderless")
}

func twiceNamespace(s *stage) (outcome, error) { return s.twiceNumbered(false) }

func cloned(s *stage) (outcome, error) { return s.twiceNumbered(true) }

func (s *stage) twiceNumbered(otherMachine bool) (outcome, error) {
	one, other, err := s.twice()
	if err != nil {
		return outcome{}, err
	}
	n := freeNumber()
	prefix, err := numbered(n)
	if err != nil {
		return outcome{}, err
	}
	c, err := s.owner(one, ":work", prefix...)
	if err != nil {
		return outcome{}, err
	}
	n = s.nameOr(one, n)
	if otherMachine && s.ours() {
		if err := plantOurs(one, n, n); err != nil {
			return outcome{}, err
		}
	}
	a, err := s.contend(other)
	if err != nil {
		return outcome{}, err
	}
	return ofLive(c, n, a)
}

func twiceDelayed(s *stage) (outcome, error) {
	one, other, err := s.twice()
	if err != nil {
		return outcome{}, err
	}
	return s.delayedAt(one, other)
}

func isMissing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, os.ErrNotExist)
}
