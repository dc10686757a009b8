package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/juju/mutex/v2"
	"github.com/nightlyone/lockfile"
	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/heirlock/heirlock"
)

// A libraryLock takes the lock at a path, once, and returns what gives it back. Without try it may wait its own way.
type libraryLock = func(path string, try bool) (func() error, error)

var libraries = map[string]libraryLock{
	"heirlock": func(path string, _ bool) (func() error, error) {
		l, err := heirlock.TryAcquire(path, heirlock.Options{Policy: heirlock.ReclaimStale})
		if err != nil {
			return nil, err
		}
		return l.Release, nil
	},
	"gofrs":      gofrs,
	"nightlyone": nightlyone,
	"juju":       juju,
	"lockedfile": lockedFile,
}

var errBusy = errors.New("busy")

func gofrs(path string, _ bool) (func() error, error) {
	f := flock.New(path)
	ok, err := f.TryLock()
	if err == nil && !ok {
		err = errBusy
	}
	return f.Unlock, err
}

func nightlyone(path string, _ bool) (func() error, error) {
	l, err := lockfile.New(path)
	if err != nil {
		return nil, err
	}
	return l.Unlock, l.TryLock()
}

// juju names locks, not paths; its files lie in TMPDIR.
func juju(path string, _ bool) (func() error, error) {
	if err := os.Setenv("TMPDIR", filepath.Dir(path)); err != nil {
		return nil, err
	}
	r, err := mutex.Acquire(mutex.Spec{Name: filepath.Base(path), Clock: wallClock{}, Delay: 10 * time.Millisecond, Timeout: 300 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	return func() error { r.Release(); return nil }, nil
}

type wallClock struct{}

func (wallClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
func (wallClock) Now() time.Time                         { return time.Now() }

// lockedFile has no form that does not wait.
func lockedFile(path string, try bool) (func() error, error) {
	type answer struct {
		unlock func()
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		unlock, err := lockedfile.MutexAt(path).Lock()
		answered <- answer{unlock, err}
	}()
	limit := time.Hour
	if try {
		limit = 500 * time.Millisecond
	}
	select {
	case a := <-answered:
		return func() error { a.unlock(); return nil }, a.err
	case <-time.After(limit):
		return nil, fmt.Errorf("%w: it waits, and was given %s", errBusy, limit)
	}
}
