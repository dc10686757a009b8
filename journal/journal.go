package journal

import (
	"context"
	"errors"
	"io/fs"

	"github.com/heirlock/heirlock"
)

// Options are the bounds of a journal, all required and positive, and how it takes its lock.
type Options[T any] struct {
	MaxEventBytes   int   // of one encoded event, hard
	MaxPendingItems int   // accepted events that are not settled yet, hard
	MaxPendingBytes int64 // of their frames, hard
	MaxFileBytes    int64 // of one file, hard; at least one frame with the largest event fits
	MaxFiles        int   // the active file and its generations, hard

	// Validate refuses an event (ErrInvalid) by returning an error, if it is not nil. It runs in Submit; a panic in it,
	// or in a method that encodes the event, counts as an error.
	Validate func(T) error
	// Lock says how the lock <path>.lock is taken. The zero policy is heirlock.Refuse; Durable is always on.
	Lock heirlock.Options
	// Mode of a new file, exactly; zero is 0600. A file that exists keeps its mode, and hands it on to the next.
	Mode fs.FileMode
	// OnFailure is called once, in a goroutine of its own, with the cause of the failure that ends the journal.
	OnFailure func(error)
}

// Receipt says where an accepted event will be.
type Receipt struct {
	Sequence uint64 // within the epoch of the journal
	Bytes    int    // of the frame with its line feed
}

// Journal is an open journal. Its methods may be called from any goroutine.
type Journal[T any] struct{}

var errNotYet = errors.New("not yet")

// Open opens the journal at an absolute path for appending.
func Open[T any](path string, opts Options[T]) (*Journal[T], error) { return nil, errNotYet }

// Submit accepts an event or refuses it, without waiting for anything but the encoding of the event.
func (j *Journal[T]) Submit(event T) (Receipt, error) { return Receipt{}, errNotYet }

// SubmitWait is Submit that waits for room while the pending bounds are exhausted.
func (j *Journal[T]) SubmitWait(ctx context.Context, event T) (Receipt, error) {
	return Receipt{}, errNotYet
}

// Flush waits until everything accepted before the call is settled.
func (j *Journal[T]) Flush(ctx context.Context) error { return errNotYet }

// Sync is Flush, and then makes the file durable.
func (j *Journal[T]) Sync(ctx context.Context) error { return errNotYet }

// Close stops admission at once, and waits until everything accepted is settled and the lock is given back.
func (j *Journal[T]) Close(ctx context.Context) error { return errNotYet }

// Status observes the journal.
func (j *Journal[T]) Status() Status { return Status{} }

// String is the status as JSON, which makes a journal an expvar.Var.
func (j *Journal[T]) String() string { return "" }
