package heirlock

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"time"

	"github.com/heirlock/heirlock/internal/kernel"
	"github.com/heirlock/heirlock/process"
)

// idle returns when it is time for another attempt, with the lock if an event gave it away, or with an error when the
// context has ended.
func (w *wait) idle(ctx context.Context) (*Lock, error) {
	for {
		changed := w.arm()
		var event kernel.Event
		if !changed {
			event = w.sleepUntilEvent(ctx)
		}
		for event.File && ctx.Err() == nil {
			l, err := w.takeFreed()
			if l != nil || err != ErrHeld {
				return l, err
			}
			if event, err = w.loseTo(ctx); err != nil {
				return nil, err
			}
		}
		if ctx.Err() != nil {
			return nil, w.gaveUp(ctx)
		}
		if event.Process {
			if l, err := w.inheritNow(); l != nil || err != nil {
				return l, err
			}
		}
		if changed || event != (kernel.Event{}) || !w.witnessStillHeld() {
			return nil, w.sleep(ctx, attemptGap-time.Since(w.last))
		}
	}
}

// takeFreed takes the name that an event says was given up: a hand-off is one link. ErrHeld: somebody was faster.
func (w *wait) takeFreed() (*Lock, error) {
	w.watched, w.process = kernel.Stat{}, false // a new file may have the same number: watch it anew
	if w.losses > 0 {                           // in a crowd a look is cheaper than a failed link, for everybody
		if _, err := w.t.dir.Stat(w.t.name); err == nil {
			return nil, ErrHeld
		}
	}
	h, err := w.t.create(w.t.name)
	w.last = time.Now()
	if err != nil {
		return nil, err
	}
	l, err := w.t.lock(&h, nil, nil)
	l.Polled = w.polled
	return l, err
}

// loseTo stays away as a loser does (see crowd), and then waits for the end of whoever has the lock, without asking who
// that is: a loss must cost microseconds. The poll's first look, soon, asks.
func (w *wait) loseTo(ctx context.Context) (event kernel.Event, err error) {
	w.losses++
	if err := w.sleep(ctx, theCrowd.lost(w.t.path, w.losses-1)); err != nil {
		return event, err
	}
	at, err := w.t.dir.Stat(w.t.name)
	if err != nil {
		return kernel.Event{File: errors.Is(err, fs.ErrNotExist)}, nil
	}
	if at.Kind != kernel.Regular {
		return event, nil // no lock of anybody: the next attempt says what it is
	}
	if w.armFile(at) {
		return kernel.Event{File: true}, nil
	}
	w.pause = pollFirst
	return w.sleepUntilEvent(ctx), nil
}

// inheritNow goes for the lock of an owner that was seen to end, without judging it first: destroy judges. Where the
// policy, or the evidence that destroy sees, says otherwise, the next attempt says so.
func (w *wait) inheritNow() (*Lock, error) {
	if w.t.opts.Policy == Refuse {
		return nil, nil
	}
	l, err := w.t.inherit(&w.seen)
	w.last = time.Now()
	if err != nil && (errors.Is(err, errChanged) || errors.Is(err, ErrHeld)) {
		return nil, nil
	}
	if l != nil {
		l.Polled = w.polled
	}
	return l, err
}

// arm makes sure that the file and the owner of the last refusal are watched, as far as they can be. True: something has
// changed since, attempt at once.
func (w *wait) arm() (changed bool) {
	if w.watch == nil {
		return false
	}
	w.t.bearEarly(w.t.name)
	d := &w.refused.Diagnosis
	at, err := w.t.dir.Stat(w.t.name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && d.facts.at.Ino != 0 && !sameOwner(at, d.facts.at) {
		return true
	}
	if err != nil || at.Kind != kernel.Regular {
		return false
	}
	if !at.SameFile(w.watched) {
		w.process, w.watched = false, kernel.Stat{}
		if changed := w.armFile(at); changed {
			return true
		}
	}
	if !w.process && d.Liveness == process.Alive && probeable(d.Owner.PID) {
		running, err := w.watch.Process(int(d.Owner.PID), d.Owner.Evidence.PidfdID)
		if err != nil {
			w.polled = err
			return false
		}
		if w.process = running; running && w.losses == 0 {
			w.t.bearEarly(w.t.guardName())
		}
		return !running
	}
	return false
}

// armFile watches the inode behind the name. True: the name leads elsewhere by now.
func (w *wait) armFile(at kernel.Stat) (changed bool) {
	f, _, err := w.t.dir.Open(w.t.name, at, false)
	if err == nil {
		err = w.watch.File(f)
		f.Close()
	}
	if errors.Is(err, kernel.ErrChanging) || errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		w.polled = err
		return false
	}
	w.watched = at
	now, err := w.t.dir.Stat(w.t.name)
	return err != nil || !now.SameFile(at)
}

// sleepUntilEvent waits for an event, or for the next look of the poll.
func (w *wait) sleepUntilEvent(ctx context.Context) (event kernel.Event) {
	first, most := pollFirst, pollMost
	if w.process && w.watched.Ino != 0 {
		first, most = pollFirstArmed, pollMostArmed
	}
	w.pause = min(max(w.pause, first), most)
	pause := w.pause/2 + rand.N(w.pause/2)
	w.pause = w.pause * 3 / 2
	if w.watch == nil {
		_ = w.sleep(ctx, pause)
		return event
	}
	event, err := w.watch.Wait(time.Now().Add(pause))
	if err != nil {
		w.watch.Close()
		w.watch, w.polled = nil, err
	}
	if event.Process {
		w.process = false
	}
	if event.File {
		w.pause = pollFirst
	}
	return event
}

// sameOwner tells, for a file that is not held open, one owner's from the next one's, which may have the same number.
func sameOwner(a, b kernel.Stat) bool { return a.SameFile(b) && a.Mtime == b.Mtime }

// witnessStillHeld is a cheap look at a lock that was refused because its witness is held although its owner is gone or
// out of sight: while nothing has changed, an attempt would be refused again.
func (w *wait) witnessStillHeld() bool {
	if w.refused.Diagnosis.Witness != witnessHeld {
		return false
	}
	at, err := w.t.dir.Stat(w.t.name)
	if err != nil || !sameOwner(at, w.refused.Diagnosis.facts.at) {
		return false
	}
	f, _, err := w.t.dir.Open(w.t.name, at, false)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(f.Lock(false), kernel.ErrLocked)
}
