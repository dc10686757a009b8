package kernel

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// dirFlags: a directory is only searched, so that a directory that may not be listed can hold locks.
const dirFlags = unix.O_PATH

// openUnnamed creates a file without a name, open(2) O_TMPFILE. Filesystems without it say EOPNOTSUPP, kernels
// and network filesystems that take the flag for O_DIRECTORY say EISDIR, EINVAL or ENOENT.
func openUnnamed(dir int, mode uint32) (int, error) {
	fd, err := openRetry(dir, ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, mode)
	switch err {
	case unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL, unix.ENOENT, unix.ENOSYS:
		return -1, ErrNoUnnamed
	}
	return fd, err
}

// linkUnnamed gives an unnamed file its name. AT_EMPTY_PATH needs CAP_DAC_READ_SEARCH before Linux 6.10 and says
// ENOENT without it; the link under /proc needs a mounted procfs. ErrNoUnnamed if neither can be had.
func linkUnnamed(fd, dir int, name string) error {
	_, err := ignoringEINTR(func() (int, error) { return 0, unix.Linkat(fd, "", dir, name, unix.AT_EMPTY_PATH) })
	if err != unix.ENOENT && err != unix.EPERM && err != unix.EINVAL {
		return err
	}
	path := "/proc/thread-self/fd/" + strconv.Itoa(fd)
	_, err = ignoringEINTR(func() (int, error) {
		return 0, unix.Linkat(unix.AT_FDCWD, path, dir, name, unix.AT_SYMLINK_FOLLOW)
	})
	if err == unix.ENOENT || err == unix.EPERM || err == unix.EXDEV || err == unix.ENOTDIR {
		return ErrNoUnnamed
	}
	return err
}

func renameExclusive(dir int, from, to string) error {
	_, err := ignoringEINTR(func() (int, error) {
		return 0, unix.Renameat2(dir, from, dir, to, unix.RENAME_NOREPLACE)
	})
	return err
}

func fdatasync(fd int) error {
	_, err := ignoringEINTR(func() (int, error) { return 0, unix.Fdatasync(fd) })
	return err
}

// filesystemType is the statfs(2) magic in hexadecimal, and the longest name.
func filesystemType(fd int) (typ string, nameMax int, err error) {
	var st unix.Statfs_t
	_, err = ignoringEINTR(func() (int, error) { return 0, unix.Fstatfs(fd, &st) })
	return strconv.FormatUint(uint64(uint32(st.Type)), 16), int(st.Namelen), err
}

// sameInode reports whether two open files are one inode of this kernel, not only one number: inotify(7) gives one watch
// descriptor to one inode. Asking by flock would not do: whoever else holds one for an instant looks the same.
func sameInode(a, b File) bool {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var wd [2]int
	for i, f := range []File{a, b} {
		wd[i], err = unix.InotifyAddWatch(fd, "/proc/self/fd/"+strconv.Itoa(f.fd), unix.IN_ATTRIB)
		if err != nil {
			return false
		}
	}
	return wd[0] == wd[1]
}
