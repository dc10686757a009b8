package heirlock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/heirlock/heirlock/internal/kernel"
)

// Lost returns a channel that is closed when the lock's file is found removed or replaced by somebody else. The file is
// watched from the first call on, until Release; where the system has no events for it, it is looked at every second.
// The channel of a lock that was released in order is never closed.
func (l *Lock) Lost() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil {
		return l.lost
	}
	l.lost = make(chan struct{})
	if l.over {
		if errors.Is(l.err, ErrLost) {
			close(l.lost)
		}
		return l.lost
	}
	dir, err := l.t.dir.Dup()
	if err != nil {
		dir = l.t.dir // out of descriptors: the vigil closes the lock's own then
	}
	v := &vigil{l: l, dir: dir, own: err == nil, wake: make(chan struct{})}
	if v.watch, err = kernel.NewWatch(); err == nil {
		if err = v.watch.File(l.file.file); err != nil {
			v.watch.Close()
			v.watch = nil
		}
	}
	l.vigil = v
	go v.keep()
	return l.lost
}

// vigil watches over the name of a held lock.
type vigil struct {
	l     *Lock
	dir   kernel.Dir
	own   bool          // dir is a descriptor of its own
	watch *kernel.Watch // nil: poll
	wake  chan struct{} // closed by Release
}

const (
	vigilPoll  = time.Second
	vigilArmed = 5 * time.Second // a look behind a lost event
)

func (v *vigil) keep() {
	defer v.dir.Close()
	watch := v.watch
	for {
		at, err := v.dir.Stat(v.l.file.name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !at.SameFile(v.l.file.stat) {
			v.l.foundLost()
			break
		}
		if watch != nil {
			if _, err := watch.Wait(time.Now().Add(vigilArmed)); err != nil {
				watch = nil
			}
		}
		if v.over(watch == nil) {
			break
		}
	}
	if v.watch != nil {
		v.watch.Close()
	}
	if !v.own {
		<-v.wake // Release still needs the directory
	}
}

// over reports whether the vigil was ended; if it has to poll, it waits for that a while.
func (v *vigil) over(poll bool) bool {
	wait := time.Duration(0)
	if poll {
		wait = vigilPoll
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-v.wake:
		return true
	case <-timer.C:
		return false
	}
}

// end stops the vigil. It does not wait: Release holds what the vigil may be waiting for.
func (v *vigil) end() {
	close(v.wake)
	if v.watch != nil {
		v.watch.Wake()
	}
}

// foundLost closes the channel, unless the name is gone because Release took it away.
func (l *Lock) foundLost() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		close(l.lost)
	}
}

// lostError is an ErrLost that names the new owner.
type lostError struct {
	path  string
	owner string
}

func (e *lostError) Error() string {
	return fmt.Sprintf("%v: %s%s", ErrLost, printable(e.path), e.owner)
}
func (e *lostError) Unwrap() error { return ErrLost }

// whyLost looks who has the name now, unless the lock was given up meanwhile, and its directory closed.
func (l *Lock) whyLost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return &lostError{path: l.Path}
	}
	e := &lostError{path: l.Path, owner: ", which is free now"}
	d, err := l.t.settled(l.t.name, false)
	switch {
	case err != nil:
		e.owner = ": " + err.Error()
	case d.State != stateFree:
		e.owner = ", which is now " + d.summary()
	}
	return e
}

// watchAfter is how long a section of Do runs before its lock is watched: short ones pay nothing.
const watchAfter = 20 * time.Millisecond

// Do acquires the lock as [Acquire] does, calls fn, and releases the lock on every way out of fn: return, panic and
// runtime.Goexit. The context of fn is cancelled with a cause that is ErrLost if the lock is lost meanwhile, which is
// found out once fn has run for 20 ms. Do returns the error of fn, joined with that of the release.
func Do(ctx context.Context, path string, opts Options, fn func(ctx context.Context, l *Lock) error) (err error) {
	if fn == nil {
		return fmt.Errorf("heirlock.Do of %q: nil function: %w", path, syscall.EINVAL)
	}
	l, err := Acquire(ctx, path, opts)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(watchAfter, func() {
		select {
		case <-l.Lost():
			cancel(l.whyLost())
		case <-ctx.Done():
		}
	})
	defer func() {
		timer.Stop()
		if releaseErr := l.Release(); releaseErr != nil {
			err = errors.Join(err, releaseErr)
		}
		cancel(nil)
	}()
	return fn(ctx, l)
}
