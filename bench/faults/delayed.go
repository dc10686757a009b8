package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Two takers of one dead owner's lock, in the one order that kills protocols which remove by name: the first has looked
// and is about to remove; the second does all of it meanwhile.

func delayed(s *stage) (outcome, error) { return s.delayedAt(s.path, s.path) }

// delayedAt has one taker under strace, and another that tries until the first has come to its end.
func (s *stage) delayedAt(onePath, otherPath string) (outcome, error) {
	if err := havePrograms("strace"); err != nil {
		return outcome{}, err
	}
	if err := s.leaveDead(onePath); err != nil {
		return outcome{}, err
	}
	pid := s.nameOr(onePath, 0)
	if s.age == 5*time.Minute { // liblockfile refuses at its first look, whatever the age
		if _, err := s.contend(onePath); err != nil {
			return outcome{}, err
		}
	}
	trace := []string{"strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=unlink,unlinkat,rmdir", "-e", "inject=unlink,unlinkat,rmdir:delay_enter=2000000"}
	one, err := s.start(append(trace, s.hold(onePath, []string{s.self, ":work"})...), nil)
	if err != nil {
		return outcome{}, err
	}
	one.awaitRemoval(filepath.Base(s.onDisk(onePath)), patience)
	var other attempt
	for end := time.Now().Add(s.limit()); !other.in && time.Now().Before(end); {
		if _, err := one.await("HELD", time.Millisecond); !errors.Is(err, errHung) {
			return s.delayedWinner(one, otherPath, other, pid, err)
		}
		if other, err = s.contend(otherPath); err != nil {
			return outcome{}, err
		}
	}
	_, err = one.await("HELD", s.limit())
	return s.delayedWinner(one, otherPath, other, pid, err)
}

// delayedWinner says who is inside. Where the first is, the other tries once more: it may have had no chance yet.
func (s *stage) delayedWinner(one *crew, otherPath string, other attempt, pid int, oneErr error) (outcome, error) {
	said := shorten(one.words(), 200)
	if oneErr == nil {
		err := one.follow()
		if err == nil && !other.in {
			other, err = s.contend(otherPath)
		}
		if err != nil {
			return outcome{}, err
		}
		if other.in && one.worker().alive() {
			return outcome{Word: double, Said: said}, nil
		}
	}
	if oneErr == nil || other.in {
		return outcome{Word: recovers, Said: said}, nil
	}
	return outcome{Word: wedges, Who: pid != 0 && attempt{crew: one}.names(pid), Waits: errors.Is(oneErr, errHung), Said: said}, nil
}

// removals are the numbers of unlink(2), unlinkat(2) and rmdir(2), and which argument is the name.
var removals = map[string]map[string]int{"amd64": {"87": 1, "84": 1, "263": 2}, "arm64": {"35": 2}}[runtime.GOARCH]

// awaitRemoval waits until a process below strace is held up in the removal of this name, or has come as far as it comes
// without one.
func (c *crew) awaitRemoval(name string, limit time.Duration) {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(time.Millisecond) {
		below := descendants(c.cmd.Process.Pid)
		for _, pid := range below {
			tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/syscall")
			for _, task := range tasks {
				if removing(pid, task) == name {
					return
				}
			}
		}
		if len(c.lines) > 0 || len(below) == 0 && stateOf(c.cmd.Process.Pid) == "Z" {
			return
		}
	}
}

// removing is the last part of the path that a stopped thread is about to remove, "" if it is not.
func removing(pid int, task string) string {
	text, _ := os.ReadFile(task)
	fields := strings.Fields(string(text))
	if len(fields) < 3 || removals[fields[0]] == 0 {
		return ""
	}
	at, err := strconv.ParseInt(fields[removals[fields[0]]], 0, 64)
	if err != nil {
		return ""
	}
	mem, err := os.Open("/proc/" + strconv.Itoa(pid) + "/mem")
	if err != nil {
		return ""
	}
	defer mem.Close()
	var path [4096]byte
	n, _ := mem.ReadAt(path[:], at)
	name, _, _ := strings.Cut(string(path[:n]), "\x00")
	return filepath.Base(name)
}

// descendants are all processes below one.
func descendants(pid int) (all []int) {
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(append(all, child), descendants(child)...)
			}
		}
	}
	return all
}
