package heirlock_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heirlock/heirlock"
)

// drop takes one event source away from the watches of this process, behind their back: what it would have said is never
// said. It reports whether there was one.
//
//	inotify  the file was removed or replaced: inotify_rm_watch of the watch of this inode
//	pidfd    the owner ended: epoll_ctl(EPOLL_CTL_DEL) of the pidfd of this process, where an epoll instance holds it
func drop(t *testing.T, source string, of uint64) (dropped bool) {
	t.Helper()
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]string{}
	for _, fd := range fds {
		targets[filepath.Base(fd)], _ = os.Readlink(fd)
	}
	for fd, is := range targets {
		info, err := os.ReadFile("/proc/self/fdinfo/" + fd)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(info)) {
			var in, wd int
			_, _ = fmt.Sscan(fd, &in)
			switch {
			case source == "inotify" && is == "anon_inode:inotify":
				var ino uint64
				if n, _ := fmt.Sscanf(line, "inotify wd:%x ino:%x", &wd, &ino); n == 2 && ino == of {
					if _, err := unix.InotifyRmWatch(in, uint32(wd)); err != nil {
						t.Fatal(err)
					}
					dropped = true
				}
			case source == "pidfd" && is == "anon_inode:[eventpoll]":
				n, _ := fmt.Sscanf(line, "tfd: %d", &wd)
				about, _ := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", wd))
				if n == 1 && targets[fmt.Sprint(wd)] == "anon_inode:[pidfd]" && strings.Contains(string(about), fmt.Sprintf("\nPid:\t%d\n", of)) {
					if err := unix.EpollCtl(in, unix.EPOLL_CTL_DEL, wd, nil); err != nil {
						t.Fatal(err)
					}
					dropped = true
				}
			}
		}
	}
	return dropped
}

// An event that is lost delays a wait until the poll's next look, and no longer.
//
//	owner    held ------------------------------- removes its file and lives on, or dies
//	waiter         watches --+
//	test                     +-- takes the source away
//	waiter                                           (no event) ... looks by itself, takes the lock
func TestWaitWhoseEventIsLost(t *testing.T) {
	t.Run("inotify", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x.lock")
		l, err := heirlock.TryAcquire(path, heirlock.Options{})
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		waitWithout(t, path, "inotify", info.Sys().(*syscall.Stat_t).Ino, func() { _ = l.Release() })
	})
	t.Run("pidfd", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x.lock")
		owner := play(t, nil, "hold", path, "refuse")
		owner.expect("held")
		waitWithout(t, path, "pidfd", uint64(owner.cmd.Process.Pid), owner.kill)
	})
}

func waitWithout(t *testing.T, path, source string, of uint64, end func()) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := make(chan error, 1)
	go func() {
		l, err := heirlock.Acquire(ctx, path, heirlock.Options{})
		if err == nil {
			err = l.Release()
		}
		got <- err
	}()
	for !drop(t, source, of) {
		select {
		case err := <-got:
			t.Fatalf("the wait ended before it watched: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	end()
	if err := <-got; err != nil {
		t.Error(err)
	}
}
