//go:build !plan9

package kernel

import (
	"errors"
	"syscall"
)

// Transient reports whether an error says something about this moment and not about what was asked for: what it kept
// from being measured may be measured the next time.
func Transient(err error) bool {
	for _, errno := range transient {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

var transient = []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EINTR, syscall.EIO, syscall.EAGAIN}

// OutOfDescriptors reports whether an error says that this process, or the system, has no file descriptor left.
func OutOfDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
