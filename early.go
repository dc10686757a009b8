package heirlock

import (
	"time"

	"github.com/heirlock/heirlock/internal/kernel"
)

// early is a lock file that a waiter made before the name is free, so that a hand-off costs it little more than the link.
type early struct {
	h  held
	n  kernel.Newborn
	at int64 // where its record says when it was acquired
}

// bearEarly makes a file of a waiter. It is only a saving: what stands in its way, the attempt will say.
func (t *target) bearEarly(name string) {
	if t.early[name] != nil || t.temporaries || t.opts.Policy == Refuse {
		return
	}
	of := t
	if name != t.name {
		of = t.forGuard()
	}
	if h, n, err := of.bear(name); err == nil {
		t.keepEarly(h, n)
	}
}

func (t *target) keepEarly(h held, n kernel.Newborn) {
	before, _ := appendRecord(nil, &Record{PID: h.rec.PID, Process: h.rec.Process, Host: h.rec.Host})
	if t.early == nil {
		t.early = map[string]*early{}
	}
	t.early[h.name] = &early{h, n, int64(len(before) - len(`"}`))}
}

// next is the file that will have the name: the one made early, with the time brought up to date, or a new one.
func (t *target) next(name string) (held, kernel.Newborn, error) {
	e := t.early[name]
	if e == nil {
		return t.bear(name)
	}
	delete(t.early, name)
	e.h.rec.AcquiredAt = time.Now().UTC().Format(acquiredLayout)
	if err := e.n.Overwrite([]byte(e.h.rec.AcquiredAt), e.at, t.opts.Durable); err != nil {
		e.n.Discard()
		return held{}, kernel.Newborn{}, err
	}
	return e.h, e.n, nil
}

// giveBack keeps an unnamed file whose name was taken by somebody faster, for a waiter's next attempt.
func (t *target) giveBack(h held, n kernel.Newborn) {
	if t.waiting && n.Route == kernel.RouteUnnamed {
		t.keepEarly(h, n)
		return
	}
	n.Discard()
}

// closeBehind closes a file; if it has no name any more, a waiting call does that behind its hand-off, because the last
// descriptor of an inode frees its blocks.
func (t *target) closeBehind(f kernel.File, nameless bool) {
	if nameless && t.waiting {
		t.nameless = append(t.nameless, f)
		return
	}
	f.Close()
}

// endWait ends the wait of a target, and returns what gives back all that it had opened and does not need.
func (t *target) endWait() (spent func()) {
	files, nameless := t.early, t.nameless
	t.waiting, t.early, t.nameless = false, nil, nil
	return func() {
		for _, e := range files {
			e.n.Discard()
		}
		for _, f := range nameless {
			f.Close()
		}
	}
}
