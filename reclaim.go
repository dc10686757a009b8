package heirlock

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/heirlock/heirlock/internal/kernel"
)

// maxRestarts bounds how often one attempt starts over because something changed under it.
const maxRestarts = 16

// flockPatience is how long an attempt tries for a flock that another process holds: inspectors and other takers have
// it for an instant, an owner for good.
const flockPatience = 100 * time.Millisecond

// errChanged: what was looked at is not there any more; start over.
var errChanged = errors.New("changed")

// attempt takes the lock or refuses. The grace is that of a waiting call, nil for a single attempt.
func (t *target) attempt(g *grace) (*Lock, error) {
	for range maxRestarts + 1 {
		seen, err := t.dir.Stat(t.name)
		if errors.Is(err, fs.ErrNotExist) {
			h, err := t.create(t.name)
			if err == ErrHeld {
				continue
			}
			return t.lock(&h, nil, err)
		}
		if err != nil {
			return nil, inDir(t, err)
		}
		d, seen, err := t.diagnose(t.name, seen, false)
		switch {
		case errors.Is(err, kernel.ErrChanging):
			continue
		case err != nil:
			return nil, err
		case !t.mayReclaim(&d, seen, g):
			return nil, &HeldError{Path: t.path, Diagnosis: d}
		}
		l, err := t.inherit(g)
		if !errors.Is(err, errChanged) {
			return l, err
		}
	}
	return nil, &HeldError{Path: t.path, Diagnosis: judge(t.path, reading{blocked: causeChanging}, facts{})}
}

func (t *target) lock(h *held, from *Diagnosis, err error) (*Lock, error) {
	if err != nil {
		return nil, err
	}
	return &Lock{Path: t.path, Owner: h.rec, Reclaimed: from, t: t, file: *h}, nil
}

// mayReclaim says whether the policy, or the grace for ownerless files, lets this attempt remove what it saw.
func (t *target) mayReclaim(d *Diagnosis, seen kernel.Stat, g *grace) bool {
	if t.opts.Policy == Refuse {
		return false
	}
	if d.State == stateOwnerless {
		return g != nil && t.opts.OwnerlessGrace != nil && g.lock.over(seen, *t.opts.OwnerlessGrace)
	}
	return d.reclaimableBy(t.opts.Policy)
}

// inherit removes a lock that may be reclaimed, under the guard, and takes its name. errChanged: start over.
func (t *target) inherit(g *grace) (*Lock, error) {
	var l *Lock
	err := t.underGuard(g, func() error {
		d, err := t.destroy(t.name, func(d *Diagnosis, seen kernel.Stat, _ flockState) bool { return t.mayReclaim(d, seen, g) })
		if err != nil {
			return err
		}
		t.sweep()
		h, err := t.create(t.name)
		l, err = t.lock(&h, d, err)
		return err
	})
	if err == ErrHeld { // somebody was faster
		d, err := t.settled(t.name, false)
		if err != nil {
			return nil, err
		}
		return nil, &HeldError{Path: t.path, Diagnosis: d}
	}
	return l, err
}

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
	_ = t.remove(&guard) // a name that stays behind has lost its flock, and the next reclaim clears it
	guard.file.Close()
	return err
}

// createGuard makes the guard: a file like a lock, but never handed on.
func (t *target) createGuard() (held, error) {
	plain := *t
	plain.opts.HandOn, plain.opts.Exec = false, false
	h, err := plain.create(t.guardName())
	t.temporaries = plain.temporaries
	return h, err
}

// clearGuard removes a guard that its owner cannot be using any more. One of ours, seen through the same view, is free
// as soon as its flock can be taken: its holder holds that to the end and never hands it on. Any other is judged like
// a lock, and goes only if its owner is provably gone.
func (t *target) clearGuard(g *grace) error {
	d, err := t.destroy(t.guardName(), func(d *Diagnosis, seen kernel.Stat, state flockState) bool {
		if d.State == stateOwnerless {
			return g != nil && g.guard.over(seen, guardGrace)
		}
		return state == flockFree && d.guardAbandoned() || d.reclaimableBy(ReclaimStale)
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
		lock.Guard, lock.Cause = d, causeGuard
		return &HeldError{Path: t.path, Diagnosis: lock}
	}
	return err
}

// guardAbandoned: a guard that heirlock wrote, whose flock speaks for its owner, and was released.
func (d *Diagnosis) guardAbandoned() bool {
	return d.Owner != nil && d.Witness == witnessReleased && d.Owner.Evidence.Witness == witnessFlock && !d.Owner.Evidence.handedOn()
}

// destroy removes a lock or a guard, as one sequence on one descriptor. Nothing that was read before the flock decides
// the removal, and the open descriptor keeps the inode number from being handed to another file.
//
//	fstatat, openat, fstat, flock(LOCK_EX|LOCK_NB), fstat, pread, fstat, [the evidence of the record], fstatat, unlinkat, close
//
// errChanged: the name leads elsewhere by now. *HeldError: it is not to be removed; the diagnosis says why.
func (t *target) destroy(name string, may func(*Diagnosis, kernel.Stat, flockState) bool) (*Diagnosis, error) {
	refuse := func(d Diagnosis) (*Diagnosis, error) { return &d, &HeldError{Path: t.path, Diagnosis: d} }
	seen, err := t.dir.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errChanged
	}
	if err != nil {
		return nil, inDir(t, err)
	}
	f, _, err := t.dir.Open(name, seen, true)
	if errors.Is(err, kernel.ErrChanging) || errors.Is(err, fs.ErrNotExist) {
		return nil, errChanged
	}
	if err != nil {
		return refuse(judge(t.pathOf(name), reading{blocked: blockedBy(err)}, facts{}))
	}
	defer f.Close()
	lockErr := t.lockPatiently(f, name, seen)
	if errors.Is(lockErr, errChanged) {
		return nil, errChanged
	}
	state := flockAnswer(lockErr)
	now, err := f.Stat()
	if err != nil {
		return nil, err
	}
	d, err := t.judgeOpen(name, f, now, state)
	if errors.Is(err, kernel.ErrChanging) {
		return nil, errChanged
	}
	if state != flockFree || !may(&d, now, state) {
		return refuse(d)
	}
	at, err := t.dir.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !at.SameFile(now) {
		return nil, errChanged
	}
	if err == nil {
		err = t.dir.Unlink(name)
	}
	if err == nil && t.opts.Durable {
		err = t.dir.Sync()
	}
	if err != nil {
		return nil, inDir(t, err)
	}
	return &d, nil
}

// lockPatiently takes the exclusive flock of an open file, with jitter, for as long as flockPatience. errChanged: the
// name was given to another file meanwhile.
func (t *target) lockPatiently(f kernel.File, name string, seen kernel.Stat) error {
	deadline := time.Now().Add(flockPatience)
	for {
		err := f.Lock(true)
		if !errors.Is(err, kernel.ErrLocked) {
			return err
		}
		at, statErr := t.dir.Stat(name)
		if errors.Is(statErr, fs.ErrNotExist) || statErr == nil && !at.SameFile(seen) {
			return errChanged
		}
		pause := time.Millisecond + rand.N(4*time.Millisecond)
		if time.Now().Add(pause).After(deadline) {
			return err
		}
		time.Sleep(pause)
	}
}

// sweep removes temporaries whose owner died before it could publish them: those of our own pattern whose flock can be
// taken. It is the tidying of a reclaim, and what it cannot do it leaves.
func (t *target) sweep() {
	names, err := t.dir.Names()
	if err != nil {
		return
	}
	for _, name := range names {
		if strings.HasPrefix(name, temporaryPrefix) && len(name) == len(temporaryPrefix)+uuidLength {
			t.sweepOne(name)
		}
	}
}

func (t *target) sweepOne(name string) {
	seen, err := t.dir.Stat(name)
	if err != nil {
		return
	}
	f, now, err := t.dir.Open(name, seen, true)
	if err != nil {
		return
	}
	defer f.Close()
	if f.Lock(true) != nil {
		return
	}
	if at, err := t.dir.Stat(name); err == nil && at.SameFile(now) {
		_ = t.dir.Unlink(name)
	}
}

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

// reclaimGuardOnly tidies a guard that was left beside a free lock.
func (t *target) reclaimGuardOnly(d, guard Diagnosis) (*Diagnosis, error) {
	if guard.State != stateFree {
		if err := t.clearGuard(nil); err != nil && !errors.Is(err, errChanged) {
			return &d, err
		}
	}
	return &d, nil
}
