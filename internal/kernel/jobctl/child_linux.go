package jobctl

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Child is a command that was started and not yet waited for.
type Child struct{ pid int }

// Start starts a command with this process's standard descriptors and every other one that is inherited. os/exec
// would first try out, with a process of its own, whether pidfds work.
func Start(path string, argv, env []string) (*Child, error) {
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{Env: env, Files: []uintptr{0, 1, 2}})
	if err != nil {
		return nil, &os.PathError{Op: "exec", Path: path, Err: err}
	}
	return &Child{pid}, nil
}

// Ended returns when the command has ended. Its number is kept until Status takes it, so that Signal cannot meet a
// stranger.
//
//	waitid(P_PID, WEXITED|WNOWAIT)
func (c *Child) Ended() error {
	for {
		err := unix.Waitid(unix.P_PID, c.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return os.NewSyscallError("waitid", err)
		}
	}
}

// Signal sends a signal to the command; after Status it must not be called.
func (c *Child) Signal(sig os.Signal) error { return syscall.Kill(c.pid, sig.(syscall.Signal)) }

// Status takes the status of a command that has ended: its own, or 128+N for signal N.
func (c *Child) Status() (int, error) {
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(c.pid, &status, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if status.Signaled() {
			return 128 + int(status.Signal()), err
		}
		return status.ExitStatus(), err
	}
}
