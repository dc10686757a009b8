package jobctl

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ReapOrphans waits for every child of process 1 but the command, whose status is its starter's. In a process with
// another number it does nothing.
func ReapOrphans(command *Child) {
	if os.Getpid() != 1 {
		return
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		for {
			for reapOne(command.pid) {
			}
			<-ended
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
