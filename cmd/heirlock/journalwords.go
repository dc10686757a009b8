package main

import (
	"fmt"
	"os"
	"time"
)

// wordsPatience bounds how long the words hold up an end that is due: once those about lines, and once the last ones.
const wordsPatience = 2 * time.Second

// words are those of a writer. They wait for whoever reads stderr, and the lines with them. After a signal or a failure
// they are dropped where they would wait too long: to drain matters more. An error of stderr changes nothing, for the
// exit status tells of the journal.
type words struct {
	ends    *ending
	failed  <-chan struct{}
	queue   chan []byte
	written chan struct{} // closed when the queue has ended and all is written
	left    time.Duration // of the patience
	dropped int
}

func newWords(ends *ending, failed <-chan struct{}) *words {
	w := &words{ends, failed, make(chan []byte, 64), make(chan struct{}), wordsPatience, 0}
	go func() {
		for text := range w.queue {
			_, _ = os.Stderr.Write(text)
		}
		close(w.written)
	}()
	return w
}

func (w *words) say(format string, args ...any) {
	w.put([]byte("heirlock: " + printable(fmt.Sprintf(format, args...)) + "\n"))
}

func (w *words) put(text []byte) {
	select { // whoever listens gets them, however late it is
	case w.queue <- text:
		return
	default:
	}
	select {
	case w.queue <- text:
		return
	case <-w.ends.noticed:
	case <-w.failed:
	}
	began := time.Now()
	select {
	case w.queue <- text:
	case <-time.After(w.left):
		w.dropped++
	}
	w.left -= time.Since(began)
}

// end returns when all is written, or nobody reads it.
func (w *words) end() {
	close(w.queue)
	select {
	case <-w.written:
		return
	case <-w.ends.noticed:
	case <-w.failed:
	}
	select {
	case <-w.written:
	case <-time.After(w.left):
	}
}
