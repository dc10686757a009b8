package kernel

import "errors"

// ErrNoWatch: this event source is not to be had here; the poll beneath every wait has to do.
var ErrNoWatch = errors.New("no event source is to be had here")

// Event says what ended a Watch.Wait. It is a reason to look again, and proves nothing.
type Event struct {
	File    bool // something happened to the watched file: its name, links or attributes
	Process bool // the watched process ended; it is not watched any more
}
