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
	return &Lock{Path: t.path, Owner: h.rec, Reclaimed: from, t: t, file: *h, since: time.Now()}, nil
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
	if kernel.Transient(err) {
		return nil, inDir(t, err)
	}
	if err != nil {
		return refuse(judge(t.pathOf(name), reading{blocked: blockedBy(err)}, facts{}))
	}
	removed := false
	defer func() { t.closeBehind(f, removed) }()
	lockErr := t.lockPatiently(f, name, seen)
	if errors.Is(lockErr, errChanged) {
		return nil, errChanged
	}
	state := flockAnswer(lockErr)
	if state == flockTaken && f.Lock(false) == nil {
		state = flockShared
	}
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
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errChanged // somebody else removed it at the last moment
	}
	removed = err == nil
	if removed && t.opts.Durable {
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
// taken. It is the tidying of a reclaim, done when nobody waits for it: at the release of an inherited lock. What it
// cannot do it leaves.
func (t *target) sweep() {
	names, err := t.dir.Names()
	if err != nil {
		return
	}
	for _, name := range names {
		if acquisition := ofTemporary(name); acquisition != "" {
			t.sweepOne(name, acquisition)
		}
	}
}

// ofTemporary is the acquisition that a temporary of ours is named after, "" for any other name.
func ofTemporary(name string) string {
	id, ours := strings.CutPrefix(name, temporaryPrefix)
	id = strings.TrimSuffix(id, probeSuffix)
	if !ours || len(id) != uuidLength {
		return ""
	}
	for i, c := range []byte(id) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && !strings.ContainsRune("0123456789abcdef", rune(c)) {
			return ""
		}
	}
	return id
}

// sweepOne removes a temporary under its flock: what was written of it so far is nothing, or the record that it is named
// after. A lock that somebody called so is none of ours.
func (t *target) sweepOne(name, acquisition string) {
	seen, err := t.dir.Stat(name)
	if err != nil {
		return
	}
	f, _, err := t.dir.Open(name, seen, true)
	if err != nil {
		return
	}
	defer f.Close()
	if f.Lock(true) != nil {
		return
	}
	now, err := f.Stat()
	if err != nil {
		return
	}
	data, err := f.ReadWhole(now, maxRecord)
	if err != nil {
		return
	}
	rec, what, _ := parseRecord(data)
	if what == unknownOwner || what == validOwner && rec.Evidence.Acquisition != acquisition {
		return
	}
	if at, err := t.dir.Stat(name); err == nil && at.SameFile(now) {
		_ = t.dir.Unlink(name)
	}
}
