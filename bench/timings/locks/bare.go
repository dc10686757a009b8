package locks

import (
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// bare hands a named lock file over with nothing but the system calls that it takes, from a thread that is blocked in
// the kernel: the owner unlinks its file, inotify(7) wakes the waiter, who links a file made before. It judges nobody and
// recovers nothing, and it is what a lock that has a name costs on this machine at least.
//
//	owner   unlink, close
//	waiter  [open(O_TMPFILE), flock, write, inotify_add_watch] read ... linkat, fstat, fstatat
func bare(path string) (func() error, error) {
	file, err := unix.Open(filepath.Dir(path), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(file, unix.LOCK_EX); err != nil {
		return nil, err
	}
	if _, err := unix.Write(file, make([]byte, 600)); err != nil {
		return nil, err
	}
	if bareWatch < 0 {
		if bareWatch, err = unix.InotifyInit1(unix.IN_CLOEXEC); err != nil {
			return nil, err
		}
	}
	self, events := "/proc/self/fd/"+strconv.Itoa(file), make([]byte, 1024)
	for watched := false; ; {
		err := unix.Linkat(unix.AT_FDCWD, self, unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
		if err == nil {
			break
		}
		if err != unix.EEXIST {
			return nil, err
		}
		if watched {
			if _, err := unix.Read(bareWatch, events); err != nil && err != unix.EINTR {
				return nil, err
			}
		}
		_, err = unix.InotifyAddWatch(bareWatch, path, unix.IN_ATTRIB)
		watched = err == nil
	}
	var ours, named unix.Stat_t
	if err := unix.Fstat(file, &ours); err != nil {
		return nil, err
	}
	if err := unix.Lstat(path, &named); err != nil || named.Ino != ours.Ino {
		return nil, err
	}
	return func() error {
		if err := unix.Unlink(path); err != nil {
			return err
		}
		return unix.Close(file)
	}, nil
}

// bareWatch is the inotify instance of this process.
var bareWatch = -1
