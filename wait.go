package heirlock

import (
	"context"
	"errors"
	"time"

	"github.com/heirlock/heirlock/internal/kernel"
)

// guardGrace is how long a waiting call must see an ownerless guard unchanged before it goes.
const guardGrace = 5 * time.Second

// grace is what a waiting call itself has seen of ownerless files. No clock of a file counts, only its own.
type grace struct{ lock, guard sighting }

type sighting struct {
	stat  kernel.Stat
	since time.Time
}

// over notes one look and reports whether the file has been seen unchanged (device, inode, size, times) for so long on
// the monotonic clock.
func (s *sighting) over(seen kernel.Stat, enough time.Duration) bool {
	if s.since.IsZero() || !s.stat.Unchanged(seen) {
		s.stat, s.since = seen, time.Now()
	}
	return time.Since(s.since) >= enough
}

// The poll beneath every wait, with jitter: for what no event source sees, and as a net behind a lost event.
const (
	pollFirst      = 10 * time.Millisecond
	pollMost       = time.Second
	pollFirstArmed = 250 * time.Millisecond // while both the file and the owner are watched
	pollMostArmed  = 5 * time.Second
	attemptGap     = time.Millisecond      // between two attempts, whatever happens
	handoffRest    = 10 * time.Millisecond // closing what a wait had opened takes longer than the hand-off: not on its path
)

// Acquire takes the lock at a path, and waits for it as long as the context lives. The policy is ReclaimStale unless
// the options say otherwise.
//
// A wait is woken by the removal of the lock file and by the end of its owner, as far as they can be seen from here,
// and looks by itself now and then for what cannot. Waiters of one process take their turns in order. A wait that ends
// with its context is a *HeldError that wraps context.Cause(ctx), with the last diagnosis and the time waited; a
// context that has ended before the call creates nothing.
func Acquire(ctx context.Context, path string, opts Options) (*Lock, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if opts.Policy == "" {
		opts.Policy = ReclaimStale
	}
	t, err := resolve(path, opts)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	l, err := t.acquire(ctx, start)
	if err != nil {
		t.close()
		return nil, err
	}
	theCrowd.took(path, time.Since(start))
	return l, nil
}

// acquire makes one attempt, however short the context lives, unless others of this process wait already, and then
// contends when its turn has come. A thousand may stand in line: what only the first needs is made when it is the first.
func (t *target) acquire(ctx context.Context, start time.Time) (*Lock, error) {
	t.waiting = true
	var w *wait
	var key lineKey
	var err error
	lined := false
	if inLine.Load() > 0 {
		key, err = keyOf(t.dir, t.name)
		lined = err == nil && hasLine(key)
	}
	if !lined {
		w = t.newWait(start)
		if l, err := w.first(ctx); w.refused == nil {
			return l, err
		}
		key, err = keyOf(t.dir, t.name)
	}
	if err != nil {
		t.endWait()()
		return nil, err
	}
	p := standInLine(key)
	defer p.leave()
	waited, turn := p.await(ctx)
	if w == nil {
		w = t.newWait(start)
	}
	if !turn {
		t.endWait()()
		return nil, w.gaveUp(ctx)
	}
	return w.contend(ctx, w.refused != nil && !waited)
}

// wait is one call that waits for a lock, once it is the first of its process in line.
type wait struct {
	t       *target
	start   time.Time
	seen    grace
	refused *HeldError // of the last attempt; nil if that was not refused
	last    time.Time  // when the last attempt was made
	pause   time.Duration
	losses  int           // times that somebody else was faster
	watch   *kernel.Watch // nil if there is none: poll
	polled  error         // why an event source was not to be had
	watched kernel.Stat   // the file whose events are awaited; zero if none
	process bool          // the owner is watched
}

func (t *target) newWait(start time.Time) *wait { return &wait{t: t, start: start, pause: pollFirst} }

// first is the attempt of one that found nobody in line.
func (w *wait) first(ctx context.Context) (*Lock, error) {
	_ = w.sleep(ctx, theCrowd.aside(w.t.path))
	l, err := w.attempt()
	if w.refused == nil {
		w.t.endWait()()
	}
	return l, err
}

// attempt makes one attempt, and keeps the refusal.
func (w *wait) attempt() (*Lock, error) {
	l, err := w.t.attempt(&w.seen)
	w.last, w.refused = time.Now(), nil
	if !errors.As(err, &w.refused) {
		w.refused = nil
	}
	if l != nil {
		l.Polled = w.polled
	}
	return l, err
}

// gaveUp is the error of a wait that ended with its context.
func (w *wait) gaveUp(ctx context.Context) error {
	if w.refused == nil {
		d, err := w.t.settled(w.t.name, false)
		if err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		w.refused = &HeldError{Path: w.t.path, Diagnosis: d}
	}
	w.refused.Waited, w.refused.cause = time.Since(w.start), context.Cause(ctx)
	return w.refused
}

// contend attempts until it is not refused, unless it has been refused just now. Whatever it opened to be woken is closed
// behind the hand-off, not on it.
func (w *wait) contend(ctx context.Context, refused bool) (l *Lock, err error) {
	w.watch, w.polled = kernel.NewWatch()
	watch, woken := w.watch, make(chan struct{})
	stop := func() bool { return true }
	if watch != nil {
		stop = context.AfterFunc(ctx, func() { watch.Wake(); close(woken) })
	}
	defer func() {
		stopped, files := stop(), w.t.endWait()
		spent := func() {
			files()
			if !stopped {
				<-woken
			}
			if watch != nil {
				watch.Close()
			}
		}
		if l == nil {
			go spent()
		} else {
			time.AfterFunc(handoffRest, spent)
		}
	}()
	for ; ; refused = false {
		if !refused {
			if l, err := w.attempt(); w.refused == nil {
				return l, err
			}
		}
		if l, err := w.idle(ctx); l != nil || err != nil {
			return l, err
		}
	}
}

// sleep sleeps, unless the context ends first.
func (w *wait) sleep(ctx context.Context, d time.Duration) error {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return w.gaveUp(ctx)
	}
	return nil
}
