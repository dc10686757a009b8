package journal

import "errors"

// The reasons for which an event is refused, in the order in which they are looked for. Errors of Submit and SubmitWait
// are a *RefusedError with one of them; errors.Is finds it.
var (
	ErrFailed       = errors.New("the journal has failed")
	ErrClosed       = errors.New("the journal is closed")
	ErrInvalid      = errors.New("the event is invalid")
	ErrOversized    = errors.New("the event is too large")
	ErrItemCapacity = errors.New("too many events are pending")
	ErrByteCapacity = errors.New("too many bytes are pending")
)

// RefusedError says why an event was not accepted. A refused event takes no sequence and leaves no trace in the file.
type RefusedError struct {
	Reason error // one of the sentinels above
	Cause  error // what validation, encoding or the failed journal said, or nil
}

func (e *RefusedError) Error() string {
	if e.Cause == nil {
		return "event refused: " + e.Reason.Error()
	}
	return "event refused: " + e.Reason.Error() + ": " + e.Cause.Error()
}

// Unwrap returns the reason and the cause.
func (e *RefusedError) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Cause}
}
