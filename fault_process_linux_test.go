package heirlock_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Finding and awaiting processes that are not our own children.

// hostPID is the last process of a prefix that started the next one each, down to the agent.
func hostPID(t testing.TB, pid int) int {
	t.Helper()
	for {
		child := firstChild(t, pid)
		if child == 0 {
			return pid
		}
		pid = child
	}
}

// openPidfd holds on to a process, so that a later kill can meet nobody else.
func openPidfd(t testing.TB, pid int) int {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// awaitEnd waits until the process behind a pidfd has exited, reaped or not.
func awaitEnd(t testing.TB, pidfd int) {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 60_000)
		if err == nil && n == 0 {
			t.Fatal("it has not ended within a minute")
		}
		if err == nil {
			return
		}
		if err != unix.EINTR {
			t.Fatal(err)
		}
	}
}

// childPID is the one child of a process.
func childPID(t testing.TB, parent int) int {
	t.Helper()
	child := firstChild(t, parent)
	if child == 0 {
		t.Fatalf("process %d has no child", parent)
	}
	return child
}

// firstChild is 0 if there is none.
func firstChild(t testing.TB, parent int) int {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		children, _ := os.ReadFile(task) // a thread may have ended meanwhile
		if first, _, found := strings.Cut(string(children), " "); found {
			return atoi(t, first)
		}
	}
	return 0
}

func atoi(t testing.TB, text string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
