package journal

import (
	"context"
	"fmt"
)

// Flush waits until everything accepted before the call is settled: written, or failed, which is an error (ErrFailed). What
// is settled already wins over a context that has ended. It is no sync: what it confirmed survives the end of the
// process, not a power cut.
func (j *Journal[T]) Flush(ctx context.Context) error { return j.ledger.await(ctx, false) }

// Sync is Flush, and then makes the files and their names durable. A sync that fails ends the journal: what the kernel could
// not write it forgets, and no later sync would tell. On a closed journal it is ErrClosed.
func (j *Journal[T]) Sync(ctx context.Context) error { return j.ledger.await(ctx, true) }

// Close stops admission at once, and waits until everything accepted is settled, the files are closed and the lock is
// given back. It may be called again, and by many. A context that ends cuts only the wait short. A journal that has failed
// does all of that by itself; Close then returns the failure.
func (j *Journal[T]) Close(ctx context.Context) error {
	j.ledger.drain()
	select {
	case <-j.writer.done:
		return j.writer.outcome()
	default:
	}
	select {
	case <-j.writer.done:
		return j.writer.outcome()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// drain ends admission.
func (l *ledger) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over.Store(true)
	if l.st.State == stateOpen {
		l.st.State = stateDraining
		l.grant()
		l.press()
	}
}

// outcome is how it ended. A lock that could not be given back is tried once more.
func (w *writer) outcome() error {
	if w.released != nil {
		_ = w.lock.Release() // the first error is the one that counts
	}
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	if cause := w.ledger.cause; cause != nil {
		return fmt.Errorf("%w: %w", ErrFailed, cause)
	}
	return nil
}
