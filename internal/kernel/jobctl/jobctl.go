// Package jobctl is what `heirlock run` needs of the operating system beside the lock: which signals to pass on, whether
// the terminal passes them already, how a command ended, and the duties of process 1. It lies below internal/kernel
// because it has build tags.
package jobctl

import "os"

// Forwarded is one signal that run takes note of.
type Forwarded struct {
	Signal os.Signal
	// Terminal signals reach a whole foreground process group from the terminal itself: passing them on as well would
	// deliver them twice.
	Terminal bool
}
