package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heirlock/heirlock"
	"github.com/heirlock/heirlock/internal/kernel/jobctl"
)

// The environment of a command that runs under a lock.
const (
	envPath        = "HEIRLOCK_PATH"        // absolute path of the lock file
	envAcquisition = "HEIRLOCK_ACQUISITION" // as in the record
	envHeld        = "HEIRLOCK_HELD"        // every acquisition that the command runs under, separated by commas
	envFD          = "HEIRLOCK_FD"          // descriptor of the lock file, if it was handed on
)

// firstFD leaves descriptors 3 to 9 to the caller, whose shell redirections use them.
const firstFD = 10

var errRanOut = errors.New("the wait ran out")

// signalled ends a wait.
type signalled struct{ sig os.Signal }

func (s signalled) Error() string { return "signal: " + s.sig.String() }

// signals are those that run forwards and that end a wait, once somebody catches them. Until then they do what they do to
// every program, which is as well: an attempt that is killed leaves nothing, or a lock that is provably dead. Catching
// them costs as much as the rest of an uncontended start.
type signals struct {
	caught chan os.Signal
	once   sync.Once
}

func newSignals() *signals { return &signals{caught: make(chan os.Signal, 16)} }

// catch takes note of the signals from now on, except of HUP and INT if the caller had ignored them (nohup): the command
// inherits that. (Of others the Go runtime does not keep it.) Words that nobody reads end nothing from now on, either.
func (s *signals) catch() {
	s.once.Do(func() {
		wanted := []os.Signal{}
		for _, f := range jobctl.Signals() {
			if !signal.Ignored(f.Signal) {
				wanted = append(wanted, f.Signal)
			}
		}
		if len(wanted) > 0 {
			signal.Notify(s.caught, wanted...)
		}
		signal.Notify(make(chan os.Signal, 1), jobctl.BrokenPipe)
	})
}

// acquire takes the lock as the flags say. A signal meanwhile ends it, with its exit status and nothing created.
func (f *lockFlags) acquire(path string, opts heirlock.Options, sigs *signals) (*heirlock.Lock, error) {
	began := time.Now()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	if f.flags.Changed("wait") && !f.zeroWait() {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, time.Duration(f.wait), errRanOut)
		defer stop()
	}
	type answer struct {
		l   *heirlock.Lock
		err error
	}
	answers, waiting := make(chan answer, 1), make(chan struct{})
	var since time.Time
	live := liveLine{quiet: f.quiet || f.json, text: func() string {
		return fmt.Sprintf("waiting for %s: %v", printable(path), time.Since(since).Round(time.Second))
	}}
	defer live.clear()
	go func() { // a file server that does not answer must not keep signals and the deadline from being heard
		l, err := f.tryThenWait(ctx, path, opts, sigs, waiting)
		answers <- answer{l, err}
	}()
	var a answer
	over := ctx.Done()
	for done := false; !done; {
		select {
		case a = <-answers:
			done = true
		case sig := <-sigs.caught:
			if jobctl.EndsWait(sig) {
				cancel(signalled{sig})
			}
		case <-waiting:
			waiting, since = nil, time.Now()
			live.start()
		case <-live.tick:
			live.show()
		case <-over:
			over = nil
			select {
			case a = <-answers:
			case <-time.After(deafFor):
				a.err = fmt.Errorf("%s: no answer from its filesystem: %w", path, context.Cause(ctx))
			}
			done = true
		}
	}
	if sig, ok := errors.AsType[signalled](context.Cause(ctx)); ok {
		if a.l != nil {
			a.err = a.l.Release()
		}
		return nil, &exitError{exitSignal + jobctl.Number(sig.sig), nil}
	}
	if gaveUp, ok := errors.AsType[*heirlock.HeldError](a.err); ok && gaveUp.Waited > 0 {
		gaveUp.Waited = time.Since(began) // with the first attempt
	}
	return a.l, f.refused(a.err)
}

// deafFor is how long an attempt may go on after its context has ended.
const deafFor = time.Second

func (f *lockFlags) tryThenWait(ctx context.Context, path string, opts heirlock.Options, sigs *signals, waiting chan<- struct{}) (*heirlock.Lock, error) {
	if err := refuseNested(path); err != nil {
		return nil, err
	}
	l, err := heirlock.TryAcquire(path, opts)
	held, refused := errors.AsType[*heirlock.HeldError](err)
	if !refused || f.zeroWait() {
		return l, err
	}
	sigs.catch()
	forEver := !f.flags.Changed("wait") // a wait that ends says enough at its end: cron would mail each that ended well
	if (forEver || f.verbose || jobctl.Terminal(int(os.Stderr.Fd()))) && !f.quiet && !f.json {
		say("waiting for %s", strings.TrimPrefix(held.Error(), heirlock.ErrHeld.Error()+": "))
	}
	close(waiting)
	l, err = heirlock.Acquire(ctx, path, opts)
	if errors.Is(err, errRanOut) && !errors.Is(err, heirlock.ErrHeld) {
		err = held // the wait ran out before it began
	}
	return l, err
}

// refused turns an error of acquiring into what is printed and the exit status.
func (f *lockFlags) refused(err error) error {
	if err == nil {
		return nil
	}
	code := statusOf(err)
	if code == exitHeld || errors.Is(err, errRanOut) {
		code = int(f.conflict)
	}
	var held *heirlock.HeldError
	if !errors.As(err, &held) {
		return &exitError{code, err}
	}
	switch {
	case f.json:
		if err := printJSON(os.Stderr, refusal{&held.Diagnosis, held.Waited.Milliseconds()}); err != nil {
			return &exitError{exitSystem, err}
		}
		err = nil
	case f.quiet:
		err = nil
	}
	return &exitError{code, err}
}

// refusal is a diagnosis with the time that was waited for it.
type refusal struct {
	*heirlock.Diagnosis
	WaitedMs int64
}

func (r refusal) MarshalJSON() ([]byte, error) {
	text, err := r.Diagnosis.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(text[:len(text)-1], `,"waitedMs":%d}`, r.WaitedMs), nil
}

// refuseNested refuses a lock that this command's own ancestors hold: it would wait for itself for ever.
func refuseNested(path string) error {
	above := os.Getenv(envHeld)
	if above == "" {
		return nil
	}
	d, err := heirlock.Inspect(path, heirlock.Options{})
	if err != nil || d.State != "held" || d.Owner == nil || d.Owner.Evidence.Acquisition == "" ||
		!slices.Contains(strings.Split(above, ","), d.Owner.Evidence.Acquisition) {
		return nil // whatever is wrong with the path, taking it will say
	}
	d.Cause = "already held by this command's own lock"
	return &heirlock.HeldError{Path: path, Diagnosis: *d}
}

// environment is what the command sees. fd is -1 if the lock was not handed on.
func environment(l *heirlock.Lock, fd int) ([]string, error) {
	path := l.Path
	if !filepath.IsAbs(path) {
		dir, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		path = dir + string(filepath.Separator) + path // not cleaned: a/.. is not . where a is a link
	}
	id := l.Owner.Evidence.Acquisition
	held := id
	if above := os.Getenv(envHeld); above != "" {
		held = above + "," + id
	}
	env := slices.DeleteFunc(os.Environ(), func(s string) bool {
		name, _, _ := strings.Cut(s, "=")
		return name == envPath || name == envAcquisition || name == envHeld || name == envFD
	})
	env = append(env, envPath+"="+path, envAcquisition+"="+id, envHeld+"="+held)
	if fd >= 0 {
		env = append(env, fmt.Sprintf("%s=%d", envFD, fd))
	}
	return env, nil
}

// lookUp finds the command before anything is taken.
func lookUp(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil || errors.Is(err, exec.ErrDot):
		return path, nil
	case errors.Is(err, os.ErrPermission) || isDirectory(name):
		return "", &exitError{exitCannotRun, fmt.Errorf("%s: not executable", name)}
	}
	return "", &exitError{exitNotFound, fmt.Errorf("%s: command not found", name)}
}

func isDirectory(name string) bool {
	info, err := os.Stat(name)
	return strings.ContainsRune(name, filepath.Separator) && err == nil && info.IsDir()
}

// announce says, on request, how the lock was had.
func (f *lockFlags) announce(l *heirlock.Lock, waited time.Duration) {
	if !f.verbose {
		return
	}
	how := ""
	if d := l.Reclaimed; d != nil {
		how = fmt.Sprintf(", inherited: %s, witness %s", d.State, d.Witness)
		if d.Identity != "" {
			how = fmt.Sprintf(", inherited from process %d on host %s: %s, witness %s", d.Owner.PID, d.Owner.Host, d.Identity, d.Witness)
		}
	}
	if l.Polled != nil {
		how += fmt.Sprintf(" (the wait was a poll: %v)", l.Polled)
	}
	say("took %s after %v%s", l.Path, waited.Round(time.Millisecond), how)
}
