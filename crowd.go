package heirlock

import (
	"math/rand/v2"
	"sync"
	"time"
)

// A crowd is what a process has learned about others that want the lock it wants most. Were all losers of a hand-off
// to watch the next owner, all would wake at its end, for one to win. So a loser stays away for a part of the time
// that this lock took to get lately, less each time it loses again: of a crowd of any size a few are ready at any
// time, more of those who have waited long, and a lone waiter, who never lost, at once.
//
// Who gives a lock back and wants it again at once would always be faster than those whom the kernel still has to wake.
// In a crowd it steps aside as a loser does; one that knows of no others does so every tenth time, for a fifth of the
// time it held the lock, and only after sections that are long against a wake-up.
type crowd struct {
	mu    sync.Mutex
	path  string        // the lock that this is about: the last one that was waited for or given back
	wait  time.Duration // running mean of the waits for it
	freed time.Time     // when this process gave it back last
	held  time.Duration // how long it had it then
	times int           // taken again at once since the last step aside
}

const (
	crowdWait = 2 * time.Millisecond // shorter waits are no crowd
	crowdMost = 250 * time.Millisecond

	asideHeld  = 500 * time.Microsecond
	asideAgain = time.Millisecond       // later is not at once
	asideMost  = 300 * time.Microsecond // of one that knows of no others
	asideCrowd = 20 * time.Millisecond
	asideEvery = 10
)

var theCrowd crowd

func (c *crowd) about(path string) {
	if c.path != path {
		c.path, c.wait, c.times = path, 0, 0
	}
}

// took notes how long the lock took to get.
func (c *crowd) took(path string, waited time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.about(path)
	c.wait += (waited - c.wait) / 4
}

// released notes that the lock was given back.
func (c *crowd) released(path string, held time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.about(path)
	c.freed, c.held = time.Now(), held
}

// lost is how long to stay away after the n-th loss of one wait, counted from 0.
func (c *crowd) lost(path string, n int) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.about(path)
	less := 0
	if n > 0 {
		less = min(1+n/6, 4)
	}
	window := min(max(c.wait, crowdWait)/2, crowdMost) >> less
	return rand.N(max(window, attemptGap))
}

// aside is how long to stay away before a lock is taken that this process gave back just now; 0 almost always.
func (c *crowd) aside(path string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.path != path || c.held < asideHeld || time.Since(c.freed) > asideAgain {
		return 0
	}
	if c.wait > crowdWait {
		return attemptGap + rand.N(min(c.wait/3, asideCrowd))
	}
	if c.times++; c.times < asideEvery {
		return 0
	}
	c.times = 0
	return min(c.held/5, asideMost)
}
