//go:build !linux

package jobctl

import (
	"errors"
	"os"
	"os/exec"
)

// Child is a command that was started.
type Child struct{ cmd exec.Cmd }

// Start starts a command with this process's standard descriptors.
func Start(path string, argv, env []string) (*Child, error) {
	c := &Child{exec.Cmd{Path: path, Args: argv, Env: env, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}}
	return c, c.cmd.Start()
}

// Ended returns when the command has ended.
func (c *Child) Ended() error {
	var exit *exec.ExitError
	if err := c.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}

// Signal sends a signal to the command.
func (c *Child) Signal(sig os.Signal) error { return c.cmd.Process.Signal(sig) }

// Status is the status of a command that has ended: its own, or 128+N for signal N.
func (c *Child) Status() (int, error) { return status(c.cmd.ProcessState), nil }
