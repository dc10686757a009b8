package main

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/heirlock/heirlock"
	"github.com/heirlock/heirlock/internal/kernel/jobctl"
)

func newExec() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exec [flags] LOCK -- CMD [ARG...]",
		Short: "take the lock, then become the command",
		Long: `exec takes the lock and becomes the command: same process number, same start, so the record stays true for as long as
the command lives. Nobody releases the lock: its file stays behind when the command ends, and the next taker inherits
it by proof (never under policy refuse). In containers prefer run: a restarted container has another namespace.

` + environmentTable + "\n\n" + lockExits,
		Example: `  heirlock exec -n /var/lib/daemon/lock -- /usr/sbin/daemon --foreground`,
	}
	f := addLockFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		path, err := f.parse(cmd, args)
		if err != nil {
			return err
		}
		return f.become(path)
	}
	return cmd
}

func (f *lockFlags) become(path string) error {
	sigs := newSignals()
	opts := f.options()
	opts.Exec = true
	start := time.Now()
	l, err := f.acquire(path, opts, sigs)
	if err != nil {
		return err
	}
	f.announce(l, time.Since(start))
	select {
	case sig := <-sigs.caught: // it came too late for the wait, and would be lost with this program
		if jobctl.EndsWait(sig) {
			return &exitError{exitSignal + jobctl.Number(sig), l.Release()}
		}
	default:
	}
	code, err := f.replace(l)
	if releaseErr := l.Release(); releaseErr != nil {
		say("%s: %v", path, releaseErr)
	}
	return &exitError{code, err}
}

// replace returns only if it fails.
func (f *lockFlags) replace(l *heirlock.Lock) (int, error) {
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
	err = jobctl.Exec(f.executable, f.argv, env)
	if errors.Is(err, syscall.ENOEXEC) {
		err = jobctl.Exec(shell, f.asScript(), env)
	}
	return cannotStart(err), fmt.Errorf("%s: %w", f.executable, err)
}
