package kernel

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// pidfsMagic is PID_FS_MAGIC of linux/magic.h: since 6.9 a pidfd is a file of its own filesystem, and its inode
// number is never used twice during a boot.
const pidfsMagic = 0x50494446

// Probe observes what runs under a process number of the caller's PID namespace. The caller completes the
// instance's boot id and namespace, which are its own.
//
//	pidfd_open, [fstat], ppoll, close                                                  who has exited
//	pidfd_open, [fstat], ppoll, open, fstatfs, read, read, close (/proc/<pid>/stat), ppoll, close    who runs
func Probe(pid int) Observation {
	fd, err := ignoringEINTR(func() (int, error) { return unix.PidfdOpen(pid, 0) })
	switch {
	case err == nil:
		defer unix.Close(fd)
		return probePidfd(fd, pid)
	case err == unix.ESRCH:
		// Only a kernel that opens a pidfd of ourselves means what it says: a seccomp filter may answer anything.
		if self, err := ignoringEINTR(func() (int, error) { return unix.PidfdOpen(os.Getpid(), 0) }); err == nil {
			unix.Close(self)
			return Observation{Presence: Absent}
		}
	case err == unix.EINVAL || err == unix.ENOENT:
		if isThread(pid) {
			return Observation{Presence: Absent}
		}
	}
	return probeNumber(pid)
}

// probePidfd judges through the pidfd: the number cannot be handed to another process unnoticed, because the
// process behind the pidfd was still there after its stat line was read.
func probePidfd(fd, pid int) Observation {
	id := pidfdID(fd)
	before, err := pidfdExited(fd)
	if err != nil {
		return Observation{Presence: Unknown, PidfdID: id, Cause: err}
	}
	if before {
		return Observation{Presence: Exited, PidfdID: id}
	}
	st, statErr := readStat(pid)
	after, err := pidfdExited(fd)
	switch {
	case err != nil:
		return Observation{Presence: Unknown, PidfdID: id, Cause: err}
	case after: // the stat line may be that of another
		return Observation{Presence: Unknown, PidfdID: id, Cause: errExchanged}
	case statErr != nil:
		return Observation{Presence: Running, PidfdID: id, Cause: statErr}
	}
	return Observation{Presence: Running, PidfdID: id, Instance: Instance{PID: pid, Platform: "linux", StartID: st.start}}
}

// pidfdExited reports whether the whole thread group behind the pidfd has exited: only then is it readable.
func pidfdExited(fd int) (bool, error) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := ignoringEINTR(func() (int, error) { return unix.Poll(fds, 0) })
	if err != nil {
		return false, os.NewSyscallError("poll", err)
	}
	if n > 0 && fds[0].Revents&^(unix.POLLIN|unix.POLLHUP) != 0 {
		return false, fmt.Errorf("poll of a pidfd returned events %#x", fds[0].Revents)
	}
	return n > 0 && fds[0].Revents&unix.POLLIN != 0, nil
}

// pidfdID is the inode number of a pidfd on pidfs, unique for the boot where an ino_t has 64 bits; "" elsewhere.
func pidfdID(fd int) string {
	var st unix.Stat_t
	if strconv.IntSize != 64 || !onPidfs(fd) || unix.Fstat(fd, &st) != nil {
		return ""
	}
	return strconv.FormatUint(st.Ino, 10)
}

// onPidfs is the same for every pidfd of a kernel: once it was seen, it is not asked again.
func onPidfs(pidfd int) bool {
	if pidfs.Load() {
		return true
	}
	var st unix.Statfs_t
	on := unix.Fstatfs(pidfd, &st) == nil && uint64(st.Type) == pidfsMagic
	pidfs.Store(on)
	return on
}

var pidfs atomic.Bool

// isThread reports whether the number belongs to a thread that leads no process, seen twice. pidfd_open(2) refuses
// such a number with EINVAL, newer kernels with ENOENT.
func isThread(pid int) bool {
	for range 2 {
		var buf [8192]byte
		status, err := readProc("/proc/"+strconv.Itoa(pid)+"/status", buf[:])
		if err != nil {
			return false
		}
		if tgid := statusNumbers(status, "Tgid:"); len(tgid) != 1 || tgid[0] == pid {
			return false
		}
	}
	return true
}

// probeNumber is the way without pidfd: kill(pid, 0) and two equal stat lines.
func probeNumber(pid int) Observation {
	if err := unix.Kill(pid, 0); err == unix.ESRCH {
		if unix.Kill(os.Getpid(), 0) == nil {
			return Observation{Presence: Absent}
		}
		return Observation{Presence: Unknown, Cause: os.NewSyscallError("kill", err)}
	} else if err != nil && err != unix.EPERM {
		return Observation{Presence: Unknown, Cause: os.NewSyscallError("kill", err)}
	}
	if isThread(pid) {
		return Observation{Presence: Absent}
	}
	first, err := readStat(pid)
	if err != nil {
		return Observation{Presence: Running, Cause: err} // hidepid: ENOENT here is no absence
	}
	second, err := readStat(pid)
	if err != nil {
		return Observation{Presence: Unknown, Cause: err}
	}
	return judgeNumber(first, second)
}

// judgeNumber draws the conclusion from two stat lines of one number. State Z alone is no exit: a thread-group
// leader that left by pthread_exit shows it while its threads run; nor is state X, seen on live processes in exec.
func judgeNumber(first, second procStat) Observation {
	gone := func(s procStat) bool { return s.state == 'Z' && s.threads == 1 }
	switch {
	case first.start != second.start || gone(first) != gone(second):
		return Observation{Presence: Unknown, Cause: errExchanged}
	case gone(second):
		return Observation{Presence: Exited}
	}
	return Observation{Presence: Running, Instance: Instance{PID: second.pid, Platform: "linux", StartID: second.start}}
}
