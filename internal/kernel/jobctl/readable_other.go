//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package jobctl

import "os"

// AwaitReadable cannot be had here: the read waits.
func AwaitReadable(_, _ *os.File) {}
