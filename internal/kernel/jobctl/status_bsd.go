//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package jobctl

import (
	"os"
	"syscall"
)

func status(state *os.ProcessState) int {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}
