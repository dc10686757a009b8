// Package locks measures how long a lock takes to change hands, and what waiting for it costs.
package locks

import (
	"context"
	"os"
	"slices"
	"syscall"

	filemutex "github.com/alexflint/go-filemutex"
	"github.com/gofrs/flock"

	"github.com/heirlock/heirlock"
)

// A locker is one way to wait for a lock and to give it back.
type locker func(path string) (release func() error, err error)

var lockers = map[string]locker{
	"bare": bare,
	"heirlock": func(path string) (func() error, error) {
		l, err := heirlock.Acquire(context.Background(), path, heirlock.Options{})
		if err != nil {
			return nil, err
		}
		return l.Release, nil
	},
	// flock is the bare system call, blocked in the kernel, as every wrapper of it does at best.
	"flock": func(path string) (func() error, error) {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		for {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
			if err != syscall.EINTR {
				break
			}
		}
		if err != nil {
			return nil, err
		}
		return f.Close, nil
	},
	"gofrs": func(path string) (func() error, error) {
		f := flock.New(path)
		return f.Unlock, f.Lock()
	},
	"filemutex": func(path string) (func() error, error) {
		m, err := filemutex.New(path)
		if err != nil {
			return nil, err
		}
		return m.Close, m.Lock()
	},
}

// names are the lockers in the order they are shown; the first is the measure.
var (
	names    = []string{"flock", "gofrs", "filemutex", "heirlock"}
	withBare = append(slices.Clone(names), "bare")
)
