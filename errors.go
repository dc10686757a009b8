package heirlock

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// Errors of this package; the system's own are wrapped in *fs.PathError.
var (
	// ErrHeld is the class of every refusal: the lock was not taken, because it is held or because nothing proves that
	// it is not. errors.As gives the *HeldError with the evidence; errors.Is(err, fs.ErrExist) holds as well.
	ErrHeld = errors.New("lock not taken")
	// ErrLost says that the lock file was removed or replaced under its holder.
	ErrLost = errors.New("lock lost: its file was removed or replaced by somebody else")
)

// HeldError is a refusal with its evidence.
type HeldError struct {
	Path      string
	Diagnosis Diagnosis
	Waited    time.Duration // how long the call waited before it gave up; 0 for a single attempt

	cause error // why the wait ended, nil for a single attempt
}

func (e *HeldError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s: %s", ErrHeld, printable(e.Path), e.Diagnosis.summary())
	if e.cause != nil {
		fmt.Fprintf(&b, "; gave up after %v: %v", e.Waited.Round(time.Millisecond), e.cause)
	}
	return b.String()
}

// Is makes a refusal an ErrHeld and, as for an exclusive create, an fs.ErrExist.
func (e *HeldError) Is(target error) bool { return target == ErrHeld || target == fs.ErrExist }

// Unwrap gives the reason why a wait ended: the cause of its context.
func (e *HeldError) Unwrap() error { return e.cause }
