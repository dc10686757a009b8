package journal

import (
	"io/fs"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/heirlock/heirlock"
)

// Options are the bounds of a journal, all required and positive, and how it takes its lock.
type Options[T any] struct {
	// MaxEventBytes bounds one encoded event, hard; at most 1 GiB. An event that is certainly larger is refused before it is
	// encoded, however long its strings, slices and maps are. What its methods (MarshalJSON, MarshalText …) return or write
	// in one piece is held in full before it is measured; so is a field that may be hidden by another of its name, or left out
	// by a method IsZero.
	MaxEventBytes   int
	MaxPendingItems int   // accepted events that are not settled yet, hard
	MaxPendingBytes int64 // of their frames, hard; at least one frame with the largest event fits
	MaxFileBytes    int64 // of one file, hard; at least one frame with the largest event fits
	MaxFiles        int   // the active file and its generations, hard; with 1 a rotation removes all that was before

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
type Journal[T any] struct {
	ledger   *ledger
	writer   *writer
	encoders sync.Pool // of *encoder[T]
	maxEvent int
	validate func(T) error
}

// Status observes the journal.
func (j *Journal[T]) Status() Status { return j.ledger.status() }

// String is the status as JSON, which makes a journal an expvar.Var.
func (j *Journal[T]) String() string {
	text, err := json.Marshal(j.Status(), jsontext.AllowInvalidUTF8(true)) // a path may be any bytes
	if err != nil {
		return strconv.Quote(err.Error())
	}
	return string(text)
}
