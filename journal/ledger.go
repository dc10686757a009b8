package journal

import (
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// What ends the wait of frames for company.
const (
	company     = 5 * time.Millisecond
	enoughBytes = 64 << 10
)

// The states of a journal.
const (
	stateOpen     = "open"
	stateDraining = "draining"
	stateClosed   = "closed"
	stateFailed   = "failed"
)

// ledger is what those who submit and the writer know together: the pending frames, and the count of everything.
type ledger struct {
	over atomic.Bool   // closed or failed: nothing is accepted any more
	kick chan struct{} // wakes the writer; holds one

	mu        sync.Mutex
	st        Status // what is counted; the fields that follow from others are filled in by status
	cause     error  // of the failure
	pending   queue
	start     []byte // of every frame, up to its sequence; with room for the rest of the head
	dormant   bool   // the writer waits without a timer: the next frame has to wake it
	due       bool   // the writer has been told not to wait for company
	hogged    queued // what was accepted since one who submits let others run
	ended     bool   // the writer will take no boundary any more
	waiting   []*waiter
	marks     []*boundary
	onFailure func(error)
}

func newLedger(epoch string, b bounds, onFailure func(error)) *ledger {
	return &ledger{
		kick: make(chan struct{}, 1), st: Status{State: stateOpen, Epoch: epoch, Bounds: b}, onFailure: onFailure,
		start: appendFrameStart(make([]byte, 0, frameHeadMost), epoch), dormant: true,
	}
}

// wake tells the writer to look; it never waits.
func (l *ledger) wake() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// lock locks for one who submits. The lock is held for the copy of a frame, and to park for that long costs a hundred times
// as much; the mutex itself does not spin while other goroutines could run, which many producers always could.
func (l *ledger) lock() {
	for range 2000 {
		if l.mu.TryLock() {
			return
		}
	}
	l.mu.Lock()
}

// refuse counts a refusal.
func (l *ledger) refuse(reason, cause error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if over := l.whyOver(); over != nil { // it comes first
		reason, cause = over, l.cause
	}
	return l.count(reason, cause)
}

func (l *ledger) count(reason, cause error) error {
	by := &l.st.RefusalsByReason
	switch reason {
	case ErrFailed:
		by.Failed++
	case ErrClosed:
		by.Closed++
	case ErrInvalid:
		by.Invalid++
	case ErrOversized:
		by.Oversized++
	case ErrItemCapacity:
		by.ItemCapacity++
	case ErrByteCapacity:
		by.ByteCapacity++
	}
	l.st.Received++
	l.st.Refused++
	return &RefusedError{Reason: reason, Cause: cause}
}

// whyOver says why nothing is accepted any more, or nil.
func (l *ledger) whyOver() error {
	switch l.st.State {
	case stateOpen:
		return nil
	case stateFailed:
		return ErrFailed
	}
	return ErrClosed
}

// refusal says why an event of so many bytes cannot be accepted now, or nil. That its frame fits a file needs no look:
// Open has refused bounds in which the largest does not.
func (l *ledger) refusal(event int) (reason, cause error) {
	if over := l.whyOver(); over != nil {
		return over, l.cause
	}
	if l.st.PendingItems >= l.st.Bounds.MaxPendingItems {
		return ErrItemCapacity, nil
	}
	if l.pending.bytes+int64(frameBytes(l.st.LastAccepted+1, event)) > l.st.Bounds.MaxPendingBytes {
		return ErrByteCapacity, nil
	}
	return nil, nil
}

// admit accepts an encoded event or refuses it.
func (l *ledger) admit(event []byte) (Receipt, error) {
	l.lock()
	reason, cause := l.refusal(len(event))
	return l.decide(event, reason, cause)
}

// decide is the end of an admission; it unlocks.
func (l *ledger) decide(event []byte, reason, cause error) (Receipt, error) {
	if reason != nil {
		err := l.count(reason, cause)
		l.mu.Unlock()
		return Receipt{}, err
	}
	r := l.accept(event)
	wanted, ordered, yields := l.wantsWriter(), l.pending.order(), l.yields(r.Bytes)
	l.mu.Unlock()
	if wanted {
		l.wake()
	}
	if ordered {
		b := newBlock()
		l.mu.Lock()
		l.pending.deliver(b)
		l.mu.Unlock()
	}
	if yields {
		runtime.Gosched()
	}
	return r, nil
}

func (l *ledger) accept(event []byte) Receipt {
	l.st.LastAccepted++
	l.st.Received++
	l.st.Accepted++
	l.st.PendingItems++
	n := frameBytes(l.st.LastAccepted, len(event))
	if p := l.pending.reserve(n); p != nil {
		_ = append(append(appendSequence(append(p, l.start...), l.st.LastAccepted), event...), frameEnd...)
	} else {
		l.pending.put(appendSequence(l.start, l.st.LastAccepted))
		l.pending.put(event)
		l.pending.put([]byte(frameEnd))
	}
	return Receipt{Sequence: l.st.LastAccepted, Bytes: n}
}

// wantsWriter reports whether the writer must be woken: out of a sleep without a timer, or because enough frames are
// there. It says so once, so that the others do not pay for it.
func (l *ledger) wantsWriter() bool {
	if l.dormant {
		l.dormant = false
		return true
	}
	if l.due || !l.isEnough() {
		return false
	}
	l.due = true
	return true
}

// queued is an amount of frames.
type queued struct {
	items int
	bytes int64
}

// yields reports whether the one who submits shall let other goroutines run, now and then while an eighth of what may be
// pending, or 1 MiB, waits for a writer that has been woken. Where all processors are busy submitting, its turn would come
// after tens of milliseconds, when there is no room any more: events would be refused while the disk has nothing to do.
func (l *ledger) yields(bytes int) bool {
	l.hogged.items++
	l.hogged.bytes += int64(bytes)
	b := &l.st.Bounds
	behind := queued{b.MaxPendingItems / 8, min(1<<20, b.MaxPendingBytes/8)}
	if !l.due || !(l.pending.bytes > behind.bytes && l.hogged.bytes > behind.bytes/16) &&
		!(l.st.PendingItems > behind.items && l.hogged.items > behind.items/16) {
		return false
	}
	l.hogged = queued{}
	return true
}

// isEnough reports whether the pending frames are company enough: 64 KiB, or half of what may be pending.
func (l *ledger) isEnough() bool {
	b := &l.st.Bounds
	return l.pending.bytes >= min(enoughBytes, b.MaxPendingBytes/2) || l.st.PendingItems >= b.MaxPendingItems-b.MaxPendingItems/2
}

// press tells the writer not to wait for company.
func (l *ledger) press() {
	l.due, l.dormant = true, false
	l.wake()
}

// fail ends the journal: every pending frame is counted as failed, and their memory released. Only the first failure
// counts. The cause is reported by a goroutine of its own, whose panic harms nobody.
func (l *ledger) fail(phase string, cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.st.State == stateFailed {
		return
	}
	l.over.Store(true)
	f := &failure{Phase: phase, Cause: strings.ToValidUTF8(cause.Error(), "\uFFFD")} // a path may be any bytes
	if l.st.PendingItems > 0 {
		f.Sequence = l.st.LastSettled + 1
	}
	l.cause = fmt.Errorf("%s: %w", phase, cause)
	l.st.State, l.st.LastFailure = stateFailed, f
	l.st.Failed += uint64(l.st.PendingItems)
	l.st.PendingItems, l.st.InFlight, l.st.LastSettled = 0, 0, l.st.LastAccepted
	l.pending.release()
	l.grant()
	l.reach()
	if tell, cause := l.onFailure, l.cause; tell != nil {
		go func() {
			defer func() { _ = recover() }()
			tell(cause)
		}()
	}
}

// status is one consistent observation.
func (l *ledger) status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.st
	out.PendingBytes = l.pending.bytes
	out.Recovery.Reasons = maps.Clone(out.Recovery.Reasons)
	return out
}
