package journal

import (
	"context"
	"slices"
)

// waiter is an event that waits for room.
type waiter struct {
	event   []byte
	receipt Receipt
	err     error
	decided chan struct{}
}

func isCapacity(reason error) bool { return reason == ErrItemCapacity || reason == ErrByteCapacity }

// admitWaiting is admit that waits for room, behind those who wait already. A wait that ends with its context is not
// counted: nothing was decided about the event.
func (l *ledger) admitWaiting(ctx context.Context, event []byte) (Receipt, error) {
	l.lock()
	if len(l.waiting) == 0 {
		if reason, cause := l.refusal(len(event)); !isCapacity(reason) {
			return l.decide(event, reason, cause)
		}
	}
	w := &waiter{event: event, decided: make(chan struct{})}
	l.waiting = append(l.waiting, w)
	l.press()
	l.mu.Unlock()
	select {
	case <-w.decided:
		return w.receipt, w.err
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := slices.Index(l.waiting, w); at >= 0 {
		l.waiting = slices.Delete(l.waiting, at, at+1)
		l.grant() // the next may need less room
		return Receipt{}, context.Cause(ctx)
	}
	return w.receipt, w.err
}

// grant decides about those who wait for room, in their order, as far as there is room.
func (l *ledger) grant() {
	for len(l.waiting) > 0 {
		w := l.waiting[0]
		reason, cause := l.refusal(len(w.event))
		if isCapacity(reason) {
			l.press() // for whom should it wait
			return
		}
		if reason != nil {
			w.err = l.count(reason, cause)
		} else {
			w.receipt = l.accept(w.event)
		}
		l.waiting[0], l.waiting = nil, l.waiting[1:]
		close(w.decided)
	}
	l.waiting = nil
}
