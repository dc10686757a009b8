package main

import (
	"errors"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/heirlock/heirlock"
	"github.com/heirlock/heirlock/internal/kernel/jobctl"
)

func newRun() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run [flags] LOCK -- CMD [ARG...]",
		Short: "take the lock, run a command, release the lock, exit with its status",
		Long: `run takes the lock, runs the command and releases the lock when the command ends, also if descendants of it go on.

The command inherits a descriptor of the lock file (HEIRLOCK_FD): if run itself is killed, the lock is not inherited
while the command, or anything it started, still has it open. --no-inherit is for commands that leave daemons behind.

` + exitTable,
		Example: `  heirlock run /run/lock/nightly.lock -- /usr/local/bin/nightly --full
  heirlock run -n job.lock -c 'date >> log'`,
	}
	f := addLockFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		path, err := f.parse(cmd, args)
		if err != nil {
			return err
		}
		return f.run(path)
	}
	return cmd
}

func (f *lockFlags) run(path string) error {
	caught, stop := catchSignals()
	defer stop()
	start := time.Now()
	l, err := f.acquire(path, f.options(), caught)
	if err != nil {
		return err
	}
	f.announce(l, time.Since(start))
	code, runErr := f.runUnder(l, caught)
	if err := l.Release(); err != nil {
		say("%s: %v", path, err)
		if code == exitOK {
			code = exitSystem
		}
	}
	if code == exitOK && runErr == nil {
		return nil
	}
	return &exitError{code, runErr}
}

// runUnder starts the command under the lock and waits for its end.
func (f *lockFlags) runUnder(l *heirlock.Lock, caught <-chan os.Signal) (int, error) {
	fd := -1
	if !f.noInherit {
		var err error
		if fd, err = l.Inheritable(firstFD); err != nil {
			return exitSystem, err
		}
	}
	env, err := environment(l, fd)
	if err != nil {
		return exitSystem, err
	}
	cmd := exec.Cmd{Path: f.executable, Args: f.argv, Env: env, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	started := make(chan int, 1)
	jobctl.ReapOrphans(func() int { pid := <-started; started <- pid; return pid })
	err = cmd.Start()
	if fd >= 0 {
		jobctl.Close(fd)
	}
	if err != nil {
		return exitCannotRun, err
	}
	started <- cmd.Process.Pid
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case sig := <-caught:
			forward(cmd.Process, sig)
		case err := <-ended:
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				return exitSystem, err
			}
			return jobctl.Status(cmd.ProcessState), nil
		}
	}
}

// forward passes a signal on, unless the terminal has sent it to the command already.
func forward(p *os.Process, sig os.Signal) {
	for _, f := range jobctl.Signals() {
		if f.Signal == sig && f.Terminal && jobctl.Foreground() {
			return
		}
	}
	_ = p.Signal(sig) // it has ended, then: its status comes next
}
