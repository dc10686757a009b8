package main

import (
	"os"
	"time"

	"github.com/heirlock/heirlock/internal/kernel/jobctl"
)

// ending is the end that a signal brings.
type ending struct {
	noticed chan struct{} // closed
	wake    *os.File      // then at its end, for whoever polls
}

// endingBy waits for one signal; the others after it do nothing.
func endingBy(signals <-chan os.Signal) (*ending, error) {
	wake, end, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	e := &ending{make(chan struct{}), wake}
	go func() {
		<-signals
		close(e.noticed)
		end.Close()
	}()
	return e, nil
}

func (e *ending) came() bool {
	select {
	case <-e.noticed:
		return true
	default:
		return false
	}
}

// chunk is what one read brought, or how reading ended.
type chunk struct {
	bytes []byte
	err   error
}

// readPatience bounds the wait for a read that had begun when the signal came: of a pipe that somebody else has emptied
// after the poll, or of what cannot be polled.
const readPatience = 5 * time.Second

// readChunks reads ahead by one chunk. Behind the signal nothing is read: whatever comes out of the input comes out of the
// channel, and then that is closed. A read of a pipe cannot be interrupted, so it begins only when there is something.
func readChunks(f *os.File, e *ending) <-chan chunk {
	const chunkBytes = 64 << 10 // what a pipe holds
	chunks := make(chan chunk)
	go func() {
		defer close(chunks)
		next, taken := make([]byte, chunkBytes), make([]byte, chunkBytes)
		for {
			jobctl.AwaitReadable(f, e.wake)
			if e.came() {
				return
			}
			n, err := f.Read(next)
			if n > 0 {
				chunks <- chunk{bytes: next[:n]}
				next, taken = taken, next // whoever takes the one is done with the other
			}
			if err != nil {
				chunks <- chunk{err: err}
				return
			}
		}
	}()
	return chunks
}
