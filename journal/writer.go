package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/heirlock/heirlock"
	"github.com/heirlock/heirlock/internal/kernel"
)

// batchBytes bounds the frames that are settled at once, if there are more than one.
const batchBytes = 256 << 10

// The phases in which a journal fails.
const (
	phaseWrite    = "write"
	phaseRotation = "rotation"
	phaseClose    = "close"
	phaseLock     = "lock"
)

// writer is the one goroutine that touches the files.
type writer struct {
	ledger   *ledger
	shelf    *shelf
	lock     *heirlock.Lock
	lockName string
	lockStat kernel.Stat // of the lock's own inode
	lost     <-chan struct{}
	window   int64 // bytes that hold a batch, and the largest frame
	pieces   [][]byte
	released error
	done     chan struct{}
}

// run appends until the journal is closed and drained, or has failed.
//
// A frame waits for company, so that one write takes many. After a batch the writer sleeps with a timer, whether there
// are frames or not, and so is there in time for the next ones without being woken: waking it would cost the one who
// submits. Only when nothing came meanwhile does it sleep without a timer.
func (w *writer) run() {
	timer := time.NewTimer(company)
	timer.Stop()
	dormant := true
	for !w.over() {
		select {
		case <-timer.C:
			dormant = w.ledger.doze()
		case <-w.ledger.kick:
			if !w.ledger.isDue() {
				if dormant { // by the first frame
					timer.Reset(company)
					dormant = false
				}
				continue
			}
			dormant = false
		case <-w.lost:
			w.ledger.fail(phaseLock, heirlock.ErrLost)
		}
		if !dormant {
			w.drain()
			timer.Reset(company)
		}
	}
	w.finish()
}

// over reports whether there is nothing left to do for the writer.
func (w *writer) over() bool {
	l := w.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = l.st.State == stateFailed || l.st.State == stateDraining && l.st.PendingItems == 0 && len(l.marks) == 0
	return l.ended
}

// drain settles what is pending now, and as long as enough comes meanwhile what comes; then it syncs, if somebody waits
// for that.
func (w *writer) drain() {
	for again := false; ; again = true {
		upto, more := w.ledger.begin(again)
		if !more {
			return
		}
		for w.ledger.isPending(upto) {
			if phase, err := w.batch(); err != nil {
				w.ledger.fail(phase, err)
				return
			}
		}
		if settled, wanted := w.ledger.wantsSync(); wanted {
			if err := w.shelf.sync(); err != nil {
				w.ledger.fail(phaseWrite, err) // the kernel forgets what it could not write: no later sync would say it
				return
			}
			w.ledger.synced(settled)
		}
	}
}

// batch appends the oldest pending frames, as many as one batch and the file hold, at least one.
//
//	fstatat of the lock, fstatat, fstat and pread64 of the file, [rotation], write …, [fstat, ftruncate]
func (w *writer) batch() (phase string, err error) {
	if err := w.holds(); err != nil {
		return phaseLock, err
	}
	found, err := w.shelf.check()
	w.ledger.note(found, err, w.shelf)
	if err != nil {
		return phaseRotation, err
	}
	w.pieces = w.ledger.oldest(w.pieces[:0], w.window)
	room := w.shelf.bytes - w.shelf.size
	n := wholeFrames(w.pieces, min(batchBytes, room))
	if n == 0 {
		first := firstFrame(w.pieces)
		if first > room {
			done, err := w.shelf.rotate()
			w.ledger.note(whereabouts{rotated: done}, err, w.shelf)
			if err != nil {
				return phaseRotation, err
			}
			room = w.shelf.bytes
		}
		n = max(wholeFrames(w.pieces, min(batchBytes, room)), first)
	}
	return w.append(n)
}

// append appends so many bytes of whole frames. What a failed write leaves of a frame is cut off again, and so is what it
// wrote and did not report: the size says it.
func (w *writer) append(n int64) (phase string, err error) {
	s := w.shelf
	pieces := limited(w.pieces, n)
	w.ledger.launch(lineFeeds(pieces))
	done := int64(0)
	for _, piece := range pieces {
		var m int
		m, err = s.active.Append(piece)
		done += int64(m)
		if err != nil {
			err = s.pathError("write", s.name, err)
			break
		}
	}
	tail := false
	if err == nil {
		s.size += done
	} else {
		done = wholeFrames(pieces, done)
		if cut := s.cutBack(s.size + done); cut != nil {
			err, tail = errors.Join(err, cut), true
		}
	}
	w.ledger.settle(done, lineFeeds(limited(pieces, done)), s.size, tail)
	clear(w.pieces) // the ledger may give their memory up
	return phaseWrite, err
}

// holds makes sure that the lock is still ours, as far as its name can say it.
func (w *writer) holds() error {
	at, err := w.shelf.dir.Stat(w.lockName)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !at.SameFile(w.lockStat) {
		return heirlock.ErrLost
	}
	if err != nil {
		return fmt.Errorf("looking at the lock: %w", err)
	}
	return nil
}

// finish closes the files, gives the lock back, and says so.
func (w *writer) finish() {
	s := w.shelf
	if err := s.active.Finish(); err != nil {
		w.ledger.fail(phaseClose, s.pathError("close", s.name, err))
	}
	w.released = w.lock.Release()
	if errors.Is(w.released, heirlock.ErrLost) {
		w.ledger.fail(phaseLock, w.released)
	} else if w.released != nil {
		w.ledger.fail(phaseClose, w.released)
	}
	s.dir.Close()
	w.ledger.close()
	close(w.done)
}

// lineFeeds counts the frames that end in the pieces: within a frame there is none.
func lineFeeds(pieces [][]byte) (n int) {
	for _, p := range pieces {
		n += bytes.Count(p, []byte{'\n'})
	}
	return n
}

// limited cuts the pieces to so many bytes.
func limited(pieces [][]byte, most int64) [][]byte {
	out := make([][]byte, 0, len(pieces))
	for _, p := range pieces {
		if p = p[:min(int64(len(p)), most)]; len(p) > 0 {
			out = append(out, p)
			most -= int64(len(p))
		}
	}
	return out
}

// wholeFrames is the length of the frames that end within so many bytes.
func wholeFrames(pieces [][]byte, most int64) (whole int64) {
	before := int64(0)
	for _, p := range pieces {
		if most <= before {
			break
		}
		p = p[:min(int64(len(p)), most-before)]
		if i := bytes.LastIndexByte(p, '\n'); i >= 0 {
			whole = before + int64(i) + 1
		}
		before += int64(len(p))
	}
	return whole
}

// firstFrame is the length of the first frame.
func firstFrame(pieces [][]byte) (n int64) {
	for _, p := range pieces {
		if i := bytes.IndexByte(p, '\n'); i >= 0 {
			return n + int64(i) + 1
		}
		n += int64(len(p))
	}
	return n
}
