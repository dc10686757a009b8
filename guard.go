package heirlock

import (
	"errors"
	"io/fs"

	"github.com/heirlock/heirlock/internal/kernel"
)

// underGuard runs one reclaim while holding <lock>.reclaim. A guard that is in the way is cleared if that is proven
// safe, and errChanged returned; it is never taken over directly.
func (t *target) underGuard(g *grace, do func() error) error {
	guard, err := t.createGuard()
	if err == ErrHeld {
		return t.clearGuard(g)
	}
	if err != nil {
		return err
	}
	err = do()
	removed := t.remove(&guard) == nil // a name that stays behind loses its flock, and the next reclaim clears it
	t.closeBehind(guard.file, removed)
	return err
}

// createGuard makes the guard: a file like a lock, but never handed on.
func (t *target) createGuard() (held, error) {
	plain := t.forGuard()
	h, err := plain.create(t.guardName())
	t.temporaries, t.early = plain.temporaries, plain.early
	if p, ok := errors.AsType[*fs.PathError](err); ok && p.Path == t.path {
		p.Path = t.pathOf(t.guardName()) // what could not be made had no name yet, and the lock is there
	}
	return h, err
}

func (t *target) forGuard() *target {
	plain := *t
	plain.opts.HandOn, plain.opts.Exec = false, false
	return &plain
}

// clearGuard removes a guard that its owner cannot be using any more. One of ours, seen through the same view, is free
// as soon as its flock can be taken: its holder holds that to the end and never hands it on. Any other is judged like
// a lock, and goes only if its owner is provably gone, and it is not a guard of ours from another view.
func (t *target) clearGuard(g *grace) error {
	d, err := t.destroy(t.guardName(), func(d *Diagnosis, seen kernel.Stat, state flockState) bool {
		if d.State == stateOwnerless {
			return g != nil && g.guard.over(seen, guardGrace)
		}
		return state == flockFree && d.guardAbandoned() || d.reclaimableBy(ReclaimStale) && !d.elsewhere()
	})
	var refused *HeldError
	switch {
	case err == nil:
		return errChanged
	case errors.As(err, &refused) && d != nil:
		lock, err := t.settled(t.name, false)
		if err != nil {
			return err
		}
		if d.State == stateStale && d.elsewhere() {
			d.Cause = causeElsewhere
		}
		d.guarded = t.path
		lock.Guard, lock.Cause = d, causeGuard
		return &HeldError{Path: t.path, Diagnosis: lock}
	}
	return err
}

// guardAbandoned: a guard that heirlock wrote, whose flock speaks for its owner, and was released.
func (d *Diagnosis) guardAbandoned() bool {
	return d.Owner != nil && d.Witness == witnessReleased && d.Owner.Evidence.Witness == witnessFlock && !d.Owner.Evidence.handedOn()
}

const causeElsewhere = "it was made through another view of this directory (another mount, or overlay's upper directory); a taker there clears it"

// elsewhere: a guard that heirlock made in another view of the directory. Who clears it from here shares no flock with who
// clears it from there, and the slower of the two would remove the guard that the faster one has made since.
func (d *Diagnosis) elsewhere() bool {
	if d.Owner == nil || d.Owner.Evidence.File.FS == "" {
		return false
	}
	file := &d.Owner.Evidence.File // another inode on the same device is a copy of it: who sees that shares its flock
	return file.FS != d.facts.fs.Type || file.Dev != d.facts.dev
}
