package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Rows about what lies at the path, and about a disk without room.

func fileScenarios() []scenario {
	rows := []scenario{{"full", "full disk", "The owner is killed and its disk is full. What a contender then does is free, but when there is room again, the lock must be to be had.", fullDisk, recovers, nil}}
	for _, o := range oddities {
		odd := o
		rows = append(rows, scenario{"odd-" + odd.key, odd.title, odd.text,
			func(s *stage) (outcome, error) { return s.odd(odd.make) }, leaves, nil})
	}
	return rows
}

type oddity struct {
	key, title, text string
	make             func(path, target string) error
}

var oddities = []oddity{
	{"fifo", "a FIFO there", "A FIFO lies at the lock's path. Nobody owns anything.", func(path, _ string) error { return unix.Mkfifo(path, 0o666) }},
	{"symlink", "a symlink there", "A symbolic link to somebody's file lies at the lock's path.", func(path, target string) error {
		return errors.Join(os.WriteFile(target, []byte("precious\n"), 0o644), os.Symlink(target, path))
	}},
	{"dangling", "a dangling symlink there", "A symbolic link to a file that does not exist lies at the lock's path.", func(path, target string) error { return os.Symlink(target, path) }},
	{"directory", "a directory there", "A directory lies at the lock's path.", func(path, _ string) error { return os.Mkdir(path, 0o755) }},
	{"sparse", "a sparse GiB there", "A sparse file of a GiB lies at the lock's path.", func(path, _ string) error {
		return errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, 1<<30))
	}},
	{"garbage", "garbage there", "A file that is no lock of anybody lies at the lock's path.", func(path, _ string) error {
		return os.WriteFile(path, bytes.Repeat([]byte("no lock\x00"), 40), 0o644)
	}},
}

// odd judges an attempt on something that is no lock: left alone, taken, hung upon, or somebody's file harmed.
func (s *stage) odd(make func(path, target string) error) (outcome, error) {
	at, target := s.onDisk(s.path), filepath.Join(s.dir, "precious")
	if err := make(at, target); err != nil {
		return outcome{}, err
	}
	before, _ := os.ReadFile(target)
	dangling := isMissing(target)
	a, err := s.contend(s.path)
	if err != nil {
		return outcome{}, err
	}
	o := outcome{Word: leaves, Waits: a.hung, Said: a.words()}
	after, _ := os.ReadFile(target)
	switch {
	case !bytes.Equal(before, after) || dangling && !isMissing(target):
		o.Word, o.Note = harms, "it wrote or made the file behind the link"
	case a.hung:
		o.Word = wedges
	case a.in:
		o.Word = takes
	}
	return o, nil
}

func fullDisk(s *stage) (outcome, error) {
	dir, err := s.mount("small", "-t", "tmpfs", "-o", "size=1m", "tmpfs")
	if err != nil {
		return outcome{}, err
	}
	s.path = filepath.Join(dir, "lk")
	c, pid, err := s.owned()
	if err != nil {
		return outcome{}, err
	}
	ballast := filepath.Join(dir, "ballast")
	if err := fill(ballast); err != nil {
		return outcome{}, err
	}
	if err := c.kill(true); err != nil {
		return outcome{}, err
	}
	a, err := s.contend(s.path)
	if err != nil {
		return outcome{}, err
	}
	if a.in {
		return ofDead(pid, a), nil
	}
	if err := os.Remove(ballast); err != nil {
		return outcome{}, err
	}
	return s.dead(pid)
}

// fill takes all the room, then every last byte.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 64 << 10; size > 0; {
		if _, err = f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			return err
		}
	}
	return nil
}
