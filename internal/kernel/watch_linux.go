package kernel

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Watch waits for events about one lock through the Go poller: an epoll(7) descriptor that holds an inotify(7) instance
// and a pidfd, and is itself polled by the runtime, so that no thread waits. It belongs to one goroutine; only Wake
// may be called from others.
type Watch struct {
	epoll   *os.File // nested in the runtime's own
	inotify int
	pidfd   int // -1 if no process is watched
	woken   atomic.Bool
}

// NewWatch opens a watch that watches nothing yet. ErrNoWatch: out of descriptors or inotify instances.
func NewWatch() (*Watch, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, noWatch("epoll_create1", err)
	}
	if err := unix.SetNonblock(ep, true); err != nil { // os.NewFile polls only what does not block
		unix.Close(ep)
		return nil, noWatch("fcntl", err)
	}
	w := &Watch{inotify: -1, pidfd: -1}
	w.epoll = os.NewFile(uintptr(ep), "epoll")
	if err := w.epoll.SetReadDeadline(time.Time{}); err != nil {
		w.Close()
		return nil, noWatch("poller", err)
	}
	return w, nil
}

func noWatch(op string, err error) error { return fmt.Errorf("%w: %s: %w", ErrNoWatch, op, err) }

func (w *Watch) add(fd int) error {
	return w.control(func(ep int) error {
		return unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
	})
}

func (w *Watch) control(do func(ep int) error) error {
	raw, err := w.epoll.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = do(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// File watches the open file in addition to what is watched. A delete event would come only at the last close of the
// inode, but every unlink, link and rename changes attributes at once. The caller compares the name with the file
// after this call: what happened before is not reported.
func (w *Watch) File(f File) error {
	if w.inotify < 0 {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
		if err != nil {
			return noWatch("inotify_init1", err)
		}
		if err := w.add(fd); err != nil {
			unix.Close(fd)
			return noWatch("epoll_ctl", err)
		}
		w.inotify = fd
	}
	_, err := unix.InotifyAddWatch(w.inotify, "/proc/self/fd/"+strconv.Itoa(f.fd), unix.IN_ATTRIB|unix.IN_MOVE_SELF)
	if err != nil {
		return noWatch("inotify_add_watch", err)
	}
	return nil
}

// Process watches a process until it ends, in place of the one watched before. False without an error: it has ended,
// or its pidfd id is not the one given; look again.
func (w *Watch) Process(pid int, pidfd string) (bool, error) {
	w.forgetProcess()
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return false, nil
	}
	if err != nil {
		return false, noWatch("pidfd_open", err)
	}
	if pidfd != "" && pidfdID(fd) != pidfd {
		unix.Close(fd)
		return false, nil
	}
	if err := w.add(fd); err != nil {
		unix.Close(fd)
		return false, noWatch("epoll_ctl", err)
	}
	w.pidfd = fd
	return true, nil
}

func (w *Watch) forgetProcess() {
	if w.pidfd >= 0 {
		unix.Close(w.pidfd) // leaves the epoll set with its last descriptor
		w.pidfd = -1
	}
}

// Wait returns at the first event, or with none at the deadline, or because Wake was called, be it before.
func (w *Watch) Wait(deadline time.Time) (Event, error) {
	if err := w.epoll.SetReadDeadline(deadline); err != nil {
		return Event{}, err
	}
	if w.woken.Load() { // Wake came before the deadline was set
		w.Wake()
	}
	raw, err := w.epoll.SyscallConn()
	if err != nil {
		return Event{}, err
	}
	var event Event
	err = raw.Read(func(uintptr) bool {
		event = w.take()
		return event != Event{}
	})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return event, nil
	}
	return event, err
}

// Wake ends this and every later Wait, from another goroutine.
func (w *Watch) Wake() {
	w.woken.Store(true)
	_ = w.epoll.SetReadDeadline(time.Unix(1, 0))
}

// take empties what is ready without waiting: the file first, which is what a hand-off needs.
func (w *Watch) take() (event Event) {
	if w.inotify >= 0 && w.drain() {
		event.File = true
		return event
	}
	if w.pidfd >= 0 {
		if exited, err := pidfdExited(w.pidfd); err == nil && exited {
			w.forgetProcess() // a dead process stays readable: it is reported once
			event.Process = true
		}
	}
	return event
}

// drain reads the queued inotify events; what does not fit the buffer stays ready. IN_IGNORED follows the end of a
// watched inode and says nothing new.
func (w *Watch) drain() (any bool) {
	var buf [1024]byte
	n, err := unix.Read(w.inotify, buf[:])
	if err != nil {
		return false
	}
	for at := 0; at+unix.SizeofInotifyEvent <= n; {
		e := (*unix.InotifyEvent)(unsafe.Pointer(&buf[at]))
		any = any || e.Mask&unix.IN_IGNORED == 0
		at += unix.SizeofInotifyEvent + int(e.Len)
	}
	return any
}

// Close gives every source back. Closing an inotify instance can take milliseconds: not on the path of a hand-off.
func (w *Watch) Close() {
	w.forgetProcess()
	if w.inotify >= 0 {
		unix.Close(w.inotify)
	}
	w.epoll.Close()
}
