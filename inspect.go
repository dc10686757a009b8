package heirlock

import (
	"errors"
	"io/fs"
	"time"

	"github.com/heirlock/heirlock/internal/kernel"
)

// changingLooks bounds how often something that changes while it is looked at is looked at again.
const changingLooks = 16

const (
	causeChanging = "changing: it was replaced or written to each time it was looked at"
	causeGuard    = "another process is reclaiming, or was"
)

// Inspect explains the lock at a path: who holds it, on what evidence, and who could take it. It takes nothing, changes
// nothing, creates nothing and waits for no lock; for an instant it holds a shared flock(2) on the file. Of the
// options only MachineID counts.
//
// The error is about the parent directory, or about asking for the name at all; whatever lies at the name is a
// Diagnosis. A dead file server can block it: call it in a goroutine where that matters.
func Inspect(path string, opts Options) (*Diagnosis, error) {
	t, err := resolve(path, opts)
	if err != nil {
		return nil, err
	}
	defer t.close()
	d, err := t.settled(t.name, true)
	if err != nil {
		return nil, err
	}
	guard, err := t.settled(t.guardName(), true)
	if err != nil {
		return nil, err
	}
	if guard.State != stateFree {
		guard.guarded = t.path
		d.Guard = &guard
	}
	return &d, nil
}

// settled diagnoses a name, and looks again while it changes under the look.
func (t *target) settled(name string, probe bool) (Diagnosis, error) {
	for range changingLooks {
		seen, err := t.dir.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			var f facts
			f.fs, _ = t.dir.Filesystem()
			return judge(t.pathOf(name), reading{free: true}, f), nil
		}
		if err != nil {
			return Diagnosis{}, inDir(t, err)
		}
		d, _, err := t.diagnose(name, seen, probe)
		if !errors.Is(err, kernel.ErrChanging) {
			return d, err
		}
		time.Sleep(time.Millisecond)
	}
	return judge(t.pathOf(name), reading{blocked: causeChanging}, facts{}), nil
}
