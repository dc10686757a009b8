package main

import (
	"fmt"
	"os"
	"time"

	"github.com/heirlock/heirlock/internal/kernel/jobctl"
)

// liveLine shows on a terminal, every second, how far it is. Elsewhere there is none.
type liveLine struct {
	quiet  bool
	text   func() string
	ticker *time.Ticker
	tick   <-chan time.Time // nil while there is nothing to show
}

func (l *liveLine) start() {
	if l.quiet || !jobctl.Terminal(int(os.Stderr.Fd())) {
		return
	}
	l.ticker = time.NewTicker(time.Second)
	l.tick = l.ticker.C
}

func (l *liveLine) show() {
	fmt.Fprintf(os.Stderr, "\rheirlock: %s\x1b[K", l.text())
}

func (l *liveLine) clear() {
	if l.ticker != nil {
		l.ticker.Stop()
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}
