//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package jobctl

import (
	"os"

	"golang.org/x/sys/unix"
)

// AwaitReadable returns when a read of in would not wait, or when stop can be read or is at its end. It consumes nothing,
// and changes nothing of a descriptor that others may have too. What cannot be polled counts as readable.
//
//	poll([in, stop], -1)
func AwaitReadable(in, stop *os.File) {
	fds := []unix.PollFd{{Fd: int32(in.Fd()), Events: unix.POLLIN}, {Fd: int32(stop.Fd()), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, -1); err != unix.EINTR {
			return
		}
	}
}
