package journal

import (
	"context"
	"fmt"
	"slices"
)

// boundary is a Flush or Sync that waits for the frames before it.
type boundary struct {
	upto    uint64
	sync    bool
	err     error
	reached chan struct{}
}

// reach lets those go whose frames are settled. Those who want a sync wait for the writer.
func (l *ledger) reach() {
	l.marks = slices.DeleteFunc(l.marks, func(m *boundary) bool {
		if !l.ended && (m.upto > l.st.LastSettled || m.sync && l.st.State != stateFailed) {
			return false
		}
		m.err = l.outcome(m)
		close(m.reached)
		return true
	})
}

// outcome is what a boundary learns whose frames are settled.
func (l *ledger) outcome(m *boundary) error {
	switch {
	case l.st.State == stateFailed && (m.sync || m.upto > l.st.LastWritten):
		return fmt.Errorf("%w: %w", ErrFailed, l.cause)
	case m.sync && l.ended:
		return ErrClosed
	}
	return nil
}

// await waits for a boundary behind everything that is accepted by now. What is settled already wins over a context
// that has ended.
func (l *ledger) await(ctx context.Context, sync bool) error {
	l.mu.Lock()
	m := &boundary{upto: l.st.LastAccepted, sync: sync, reached: make(chan struct{})}
	l.marks = append(l.marks, m)
	l.reach()
	if slices.Contains(l.marks, m) {
		l.press()
	}
	l.mu.Unlock()
	select {
	case <-m.reached:
		return m.err
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := slices.Index(l.marks, m); at >= 0 {
		l.marks = slices.Delete(l.marks, at, at+1)
		return context.Cause(ctx)
	}
	return m.err
}
