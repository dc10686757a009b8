package main

import (
	"fmt"
	"os"
	"time"

	"github.com/heirlock/heirlock/internal/kernel/jobctl"
)

// liveLine shows on a terminal how long the wait has lasted. Elsewhere there is none.
type liveLine struct {
	quiet  bool
	path   string
	since  time.Time
	ticker *time.Ticker
	tick   <-chan time.Time // nil while there is nothing to show
}

func (l *liveLine) start() {
	if l.quiet || !jobctl.Terminal(int(os.Stderr.Fd())) {
		return
	}
	l.since, l.ticker = time.Now(), time.NewTicker(time.Second)
	l.tick = l.ticker.C
}

func (l *liveLine) show() {
	fmt.Fprintf(os.Stderr, "\rheirlock: waiting for %s: %v", printable(l.path), time.Since(l.since).Round(time.Second))
}

func (l *liveLine) clear() {
	if l.ticker != nil {
		l.ticker.Stop()
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}
