//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package jobctl

import (
	"errors"
	"os"
)

// BrokenPipe: there is no such signal here; one that nothing sends stands for it.
var BrokenPipe os.Signal = os.Kill

// Inherits: whether a command inherits descriptors by their numbers.
const Inherits = false

// Signals: an interrupt reaches every process of the console by itself here.
func Signals() []Forwarded { return []Forwarded{{os.Interrupt, true}} }

// EndsWait reports whether the signal ends a wait.
func EndsWait(os.Signal) bool { return true }

// Number of an interrupt, as elsewhere.
func Number(os.Signal) int { return 2 }

// Foreground: the console delivers to everyone.
func Foreground() bool { return true }

func status(state *os.ProcessState) int { return state.ExitCode() }

// Terminal: no live lines here.
func Terminal(int) bool { return false }

// Exec cannot be had here.
func Exec(string, []string, []string) error { return errors.ErrUnsupported }

// Close: no descriptors are handed on here.
func Close(int) {}
