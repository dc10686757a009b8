package heirlock

import (
	"context"
	"errors"
	"math/rand/v2"
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

// The poll beneath every wait, with jitter.
const (
	pollFirst = 10 * time.Millisecond
	pollMost  = time.Second
)

// Acquire takes the lock at a path, and waits for it as long as the context lives. The policy is ReclaimStale unless
// the options say otherwise. A wait that ends with its context is a *HeldError that wraps context.Cause(ctx), with
// the last diagnosis and the time waited; a context that has ended before the call creates nothing.
func Acquire(ctx context.Context, path string, opts Options) (*Lock, error) {
	if opts.Policy == "" {
		opts.Policy = ReclaimStale
	}
	t, err := resolve(path, opts)
	if err != nil {
		return nil, err
	}
	l, err := t.wait(ctx)
	if err != nil {
		t.close()
		return nil, err
	}
	return l, nil
}

func (t *target) wait(ctx context.Context) (*Lock, error) {
	var g grace
	start, pause := time.Now(), pollFirst
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for {
		l, err := t.attempt(&g)
		var refused *HeldError
		if err == nil || !errors.As(err, &refused) {
			return l, err
		}
		timer := time.NewTimer(pause/2 + rand.N(pause/2))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			refused.Waited, refused.cause = time.Since(start), context.Cause(ctx)
			return nil, refused
		}
		pause = min(pause*3/2, pollMost)
	}
}
