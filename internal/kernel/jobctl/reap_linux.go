package jobctl

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ReapOrphans waits for every child of process 1 but the command itself, which its starter waits for. It does nothing
// in a process with another number. The command must not have been started yet.
func ReapOrphans(command func() int) {
	if os.Getpid() != 1 {
		return
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		for range ended {
			for reapOne(command()) {
			}
		}
	}()
}

// reapOne looks at one ended child without taking its status, and takes it unless it is the command's.
//
//	waitid(P_ALL, WEXITED|WNOHANG|WNOWAIT), wait4(pid)
func reapOne(command int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	if err != nil {
		return false
	}
	pid := int(siginfoPID(&info))
	if pid == 0 || pid == command {
		return false
	}
	_, err = unix.Wait4(pid, nil, unix.WNOHANG, nil)
	return err == nil
}

// siginfoPID is si_pid of a SIGCHLD siginfo_t: the first member of its union, sigaction(2).
func siginfoPID(info *unix.Siginfo) int32 {
	offset := 3 * unsafe.Sizeof(int32(0))
	if unsafe.Sizeof(uintptr(0)) == 8 {
		offset = 4 * unsafe.Sizeof(int32(0)) // the union is aligned to a pointer
	}
	return *(*int32)(unsafe.Add(unsafe.Pointer(info), offset))
}
