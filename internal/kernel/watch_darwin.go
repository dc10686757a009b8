package kernel

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Watch waits for events about one lock through a kqueue(2). It belongs to one goroutine, and blocks a thread while it
// waits; only Wake may be called from others.
type Watch struct {
	queue int
	file  int // duplicate of the watched file, which the queue needs open; -1 if none
	woken atomic.Bool

	mu     sync.Mutex // between Wake and Close
	closed bool
}

const wakeIdent = 1

// NewWatch opens a watch that watches nothing yet.
func NewWatch() (*Watch, error) {
	q, err := unix.Kqueue()
	if err != nil {
		return nil, noWatch("kqueue", err)
	}
	unix.CloseOnExec(q)
	w := &Watch{queue: q, file: -1}
	if err := w.change(wakeIdent, unix.EVFILT_USER, unix.EV_ADD|unix.EV_CLEAR, 0); err != nil {
		w.Close()
		return nil, noWatch("kevent", err)
	}
	return w, nil
}

func noWatch(op string, err error) error { return fmt.Errorf("%w: %s: %w", ErrNoWatch, op, err) }

func (w *Watch) change(ident, filter, flags int, notes uint32) error {
	var e unix.Kevent_t
	unix.SetKevent(&e, ident, filter, flags)
	e.Fflags = notes
	_, err := unix.Kevent(w.queue, []unix.Kevent_t{e}, nil, nil)
	return err
}

// File watches the open file in place of the one watched before.
func (w *Watch) File(f File) error {
	fd, err := unix.FcntlInt(uintptr(f.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return noWatch("fcntl", err)
	}
	w.forgetFile()
	w.file = fd
	err = w.change(fd, unix.EVFILT_VNODE, unix.EV_ADD|unix.EV_CLEAR, unix.NOTE_DELETE|unix.NOTE_RENAME|unix.NOTE_LINK|unix.NOTE_ATTRIB|unix.NOTE_REVOKE)
	if err != nil {
		return noWatch("kevent", err)
	}
	return nil
}

func (w *Watch) forgetFile() {
	if w.file >= 0 {
		unix.Close(w.file)
		w.file = -1
	}
}

// Process watches a process until it ends. False without an error: it has ended; look again.
func (w *Watch) Process(pid int, _ string) (bool, error) {
	err := w.change(pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT, unix.NOTE_EXIT)
	if err == unix.ESRCH {
		return false, nil
	}
	if err != nil {
		return false, noWatch("kevent", err)
	}
	return true, nil
}

// Wait returns at the first event, or with none at the deadline, or because Wake was called, be it before.
func (w *Watch) Wait(deadline time.Time) (event Event, err error) {
	for !w.woken.Load() {
		left := time.Until(deadline)
		if left <= 0 {
			return event, nil
		}
		timeout := unix.NsecToTimespec(left.Nanoseconds())
		var ready [3]unix.Kevent_t
		n, err := unix.Kevent(w.queue, nil, ready[:], &timeout)
		if err != nil && err != unix.EINTR {
			return event, err
		}
		for _, e := range ready[:max(n, 0)] {
			event.File = event.File || e.Filter == unix.EVFILT_VNODE
			event.Process = event.Process || e.Filter == unix.EVFILT_PROC
		}
		if event != (Event{}) {
			return event, nil
		}
	}
	return event, nil
}

// Wake ends this and every later Wait, from another goroutine.
func (w *Watch) Wake() {
	w.woken.Store(true)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	_ = w.change(wakeIdent, unix.EVFILT_USER, 0, unix.NOTE_TRIGGER)
}

// Close gives every source back.
func (w *Watch) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.forgetFile()
	unix.Close(w.queue)
}
