package heirlock

import (
	"errors"

	"github.com/heirlock/heirlock/internal/kernel"
)

// Reclaim removes the lock at a path without taking it, under its guard, and returns the diagnosis that it was removed
// on; State "free" says that there was none. Without an id it removes only a lock whose owner is provably gone
// (opts.Policy, by default ReclaimStale; Refuse removes nothing).
//
// With an id, as [Inspect] showed it, it removes exactly the lock or guard with that id even if nothing is proven: the
// caller answers for its owner's death. It never removes one whose owner is alive or whose witness is held, and nothing
// whose flock cannot be taken. A refusal is a *HeldError.
func Reclaim(path, id string, opts Options) (*Diagnosis, error) {
	if opts.Policy == "" {
		opts.Policy = ReclaimStale
	}
	opts.OwnerlessGrace = nil
	t, err := resolve(path, opts)
	if err != nil {
		return nil, err
	}
	defer t.close()
	for range maxRestarts + 1 {
		d, err := t.reclaimOnce(id)
		if !errors.Is(err, errChanged) && !errors.Is(err, kernel.ErrChanging) {
			return d, err
		}
	}
	return nil, &HeldError{Path: path, Diagnosis: judge(path, reading{blocked: causeChanging}, facts{})}
}

func (t *target) reclaimOnce(id string) (*Diagnosis, error) {
	named := func(d *Diagnosis) bool { return id != "" && d.ID == id && d.State != stateHeld }
	guard, err := t.settled(t.guardName(), false)
	if err != nil {
		return nil, err
	}
	if named(&guard) {
		return t.destroy(t.guardName(), func(d *Diagnosis, _ kernel.Stat, _ flockState) bool { return named(d) })
	}
	may := func(d *Diagnosis) bool {
		if id != "" {
			return named(d)
		}
		return t.opts.Policy != Refuse && d.reclaimableBy(t.opts.Policy)
	}
	d, err := t.settled(t.name, false)
	switch {
	case err != nil:
		return nil, err
	case d.State == stateFree:
		return t.reclaimGuardOnly(d, guard)
	case !may(&d):
		return &d, &HeldError{Path: t.path, Diagnosis: d}
	}
	var removed *Diagnosis
	err = t.underGuard(nil, func() error {
		removed, err = t.destroy(t.name, func(d *Diagnosis, _ kernel.Stat, _ flockState) bool { return may(d) })
		if err == nil {
			t.sweep()
		}
		return err
	})
	return removed, err
}

// reclaimGuardOnly tidies what dead processes left beside a free lock: a guard, temporaries.
func (t *target) reclaimGuardOnly(d, guard Diagnosis) (*Diagnosis, error) {
	if guard.State != stateFree {
		err := t.clearGuard(nil)
		if err != nil && !errors.Is(err, errChanged) && !errors.Is(err, ErrHeld) { // somebody is at work, or was
			return &d, err
		}
	}
	t.sweep()
	return &d, nil
}
