//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package jobctl

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// BrokenPipe is the signal of a write that nobody reads.
var BrokenPipe os.Signal = syscall.SIGPIPE

// Inherits: whether a command inherits descriptors by their numbers.
const Inherits = true

// Signals are those that run forwards to its command, and that end a wait.
func Signals() []Forwarded {
	return []Forwarded{
		{syscall.SIGINT, true}, {syscall.SIGQUIT, true}, {syscall.SIGHUP, true}, {unix.SIGWINCH, true},
		{syscall.SIGTERM, false}, {syscall.SIGUSR1, false}, {syscall.SIGUSR2, false},
	}
}

// EndsWait reports whether a signal that run forwards would end a program that does not handle it.
func EndsWait(sig os.Signal) bool { return sig != unix.SIGWINCH }

// Number is the number of a signal, for exit status 128+N.
func Number(sig os.Signal) int {
	if s, ok := sig.(syscall.Signal); ok {
		return int(s)
	}
	return 0
}

// Foreground reports whether this process is in the foreground process group of its controlling terminal. Without a
// controlling terminal it is not.
func Foreground() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// Terminal reports whether a descriptor is a terminal.
func Terminal(fd int) bool {
	_, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	return err == nil
}

// Exec becomes another program. It returns only if that fails.
func Exec(path string, argv, env []string) error { return syscall.Exec(path, argv, env) }

// Close closes a descriptor by its number.
func Close(fd int) { unix.Close(fd) }
