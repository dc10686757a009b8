package main

import (
	"errors"
	"os"
	"syscall"
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
while the command, or anything it started, still has it open; --no-inherit is for commands whose daemons should not.

` + environmentTable + "\n\n" + lockExits + `
  70   the lock was lost while the command ran, and the command ended with 0`,
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
	sigs := newSignals()
	go sigs.catch() // beside the attempt
	start := time.Now()
	l, err := f.acquire(path, f.options(), sigs)
	if err != nil {
		return err
	}
	sigs.catch() // it is done when this returns
	f.announce(l, time.Since(start))
	code, runErr := f.runUnder(l, sigs.caught)
	err = l.Release()
	switch {
	case errors.Is(err, heirlock.ErrLost):
		if code == exitOK {
			code = exitLost
		}
		if !f.lost { // the command ended before anybody noticed
			say("%s: %v", path, err)
		}
	case err != nil:
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
	command, err := jobctl.Start(f.executable, f.argv, env)
	if errors.Is(err, syscall.ENOEXEC) {
		command, err = jobctl.Start(shell, f.asScript(), env)
	}
	if fd >= 0 {
		jobctl.Close(fd)
	}
	if err != nil {
		return cannotStart(err), err
	}
	jobctl.ReapOrphans(command)
	ended := make(chan error, 1)
	go func() { ended <- command.Ended() }()
	var lost <-chan struct{}
	armed := time.After(watchAfter)
	for {
		select {
		case <-armed:
			lost = l.Lost()
		case sig := <-caught:
			forward(command, sig)
		case <-lost:
			lost, f.lost = nil, true
			say("%s: %v; the command is asked to end", l.Path, heirlock.ErrLost)
			_ = command.Signal(syscall.SIGTERM)
		case err := <-ended:
			if err != nil {
				return exitSystem, err
			}
			return command.Status()
		}
	}
}

// watchAfter is how long a command runs before its lock is watched: short ones pay nothing.
const watchAfter = 20 * time.Millisecond

const shell = "/bin/sh"

// asScript is how a program without a #! line is run, by execvp(3) and by every shell.
func (f *lockFlags) asScript() []string {
	return append([]string{shell, f.executable}, f.argv[1:]...)
}

// cannotStart tells a program that cannot be run from a system that cannot run one more.
func cannotStart(err error) int {
	for _, errno := range []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, errno) {
			return exitSystem
		}
	}
	return exitCannotRun
}

// forward passes a signal on, unless the terminal has sent it to the command already.
func forward(command *jobctl.Child, sig os.Signal) {
	for _, f := range jobctl.Signals() {
		if f.Signal == sig && f.Terminal && jobctl.Foreground() {
			return
		}
	}
	_ = command.Signal(sig) // it has ended, then: its status comes next
}
