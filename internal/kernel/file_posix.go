//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package kernel

import (
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Dir is an open directory. Every name that heirlock uses is relative to one, so that a later chdir, or a
// parent that is renamed, changes nothing. It is a bare descriptor: nothing but Close closes it.
type Dir struct{ fd int }

// File is an open file as a bare descriptor, without finalizer or cleanup: nothing but Close closes it, and with it
// the flock(2) that it may hold.
type File struct{ fd int }

// OpenDir opens a directory, following symbolic links.
func OpenDir(path string) (Dir, error) {
	fd, err := openRetry(unix.AT_FDCWD, path, dirFlags|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Dir{-1}, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return Dir{fd}, nil
}

// Close closes the directory.
func (d Dir) Close() { unix.Close(d.fd) }

// Dup returns a second descriptor of the directory.
func (d Dir) Dup() (Dir, error) {
	fd, err := unix.FcntlInt(uintptr(d.fd), unix.F_DUPFD_CLOEXEC, 0)
	return Dir{fd}, os.NewSyscallError("fcntl(F_DUPFD_CLOEXEC)", err)
}

// Own describes the directory itself.
func (d Dir) Own() (Stat, error) { return File(d).Stat() }

// Stat describes what lies at a name, without following a symbolic link. A name that is free, the common case, is a bare
// ENOENT.
func (d Dir) Stat(name string) (Stat, error) {
	var st unix.Stat_t
	_, err := ignoringEINTR(func() (int, error) { return 0, unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err == unix.ENOENT {
		return Stat{}, err
	}
	if err != nil {
		return Stat{}, &fs.PathError{Op: "fstatat", Path: name, Err: err}
	}
	return fromStat(&st), nil
}

// Open opens the regular file that an earlier Stat described, and only that: it follows no link, waits for no
// writer or lease, and returns ErrChanging if the name leads elsewhere by now. With write it is opened
// for writing too where that is allowed (NFS grants an exclusive flock on nothing less).
func (d Dir) Open(name string, seen Stat, write bool) (File, Stat, error) {
	if seen.Kind != Regular {
		return File{-1}, Stat{}, &NotRegularError{seen.Kind}
	}
	const flags = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := -1, error(unix.EACCES)
	if write {
		fd, err = openRetry(d.fd, name, unix.O_RDWR|flags, 0)
	}
	if err == unix.EACCES || err == unix.EROFS || err == unix.EPERM {
		fd, err = openRetry(d.fd, name, unix.O_RDONLY|flags, 0)
	}
	if err == unix.EWOULDBLOCK {
		return File{-1}, Stat{}, ErrLeased
	}
	if err == unix.ELOOP || err == unix.EMLINK {
		return File{-1}, Stat{}, ErrChanging // it was regular a moment ago
	}
	if err != nil {
		return File{-1}, Stat{}, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f := File{fd}
	st, err := f.Stat()
	if err == nil && (!st.SameFile(seen) || st.Kind != Regular) {
		err = ErrChanging
	}
	if err != nil {
		f.Close()
		return File{-1}, Stat{}, err
	}
	return f, st, nil
}

// Unlink removes a name. The caller holds the flock of the inode behind it.
func (d Dir) Unlink(name string) error {
	_, err := ignoringEINTR(func() (int, error) { return 0, unix.Unlinkat(d.fd, name, 0) })
	if err != nil {
		return &fs.PathError{Op: "unlink", Path: name, Err: err}
	}
	return nil
}

// Sync makes the names in the directory durable.
func (d Dir) Sync() error {
	fd, err := openRetry(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		_, err = ignoringEINTR(func() (int, error) { return 0, unix.Fsync(fd) })
		unix.Close(fd)
	}
	return os.NewSyscallError("fsync of the directory", err)
}

// Names lists the directory.
func (d Dir) Names() ([]string, error) {
	fd, err := openRetry(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("open of the directory", err)
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close()
	return f.Readdirnames(-1)
}

// Filesystem describes the filesystem that new names in the directory lie on.
func (d Dir) Filesystem() (Filesystem, error) { return File(d).Filesystem() }

// Close closes the file, and drops its flock if no other descriptor shares the open file description.
func (f File) Close() { unix.Close(f.fd) }

// Stat describes the open file.
func (f File) Stat() (Stat, error) {
	var st unix.Stat_t
	_, err := ignoringEINTR(func() (int, error) { return 0, unix.Fstat(f.fd, &st) })
	if err != nil {
		return Stat{}, os.NewSyscallError("fstat", err)
	}
	return fromStat(&st), nil
}

// Filesystem describes the filesystem of the open file.
func (f File) Filesystem() (Filesystem, error) {
	typ, nameMax, err := filesystemType(f.fd)
	if err != nil {
		return Filesystem{Scope: ScopeUnknown}, os.NewSyscallError("fstatfs", err)
	}
	out := KnownFilesystem(typ)
	out.NameMax = nameMax
	return out, nil
}

// Lock takes the flock(2) of the open file without waiting. ErrLocked: somebody else holds it. ErrNoLock: this
// filesystem has none.
func (f File) Lock(exclusive bool) error {
	how := unix.LOCK_SH | unix.LOCK_NB
	if exclusive {
		how = unix.LOCK_EX | unix.LOCK_NB
	}
	_, err := ignoringEINTR(func() (int, error) { return 0, unix.Flock(f.fd, how) })
	switch err {
	case nil:
		return nil
	case unix.EWOULDBLOCK:
		return ErrLocked
	case unix.ENOLCK, unix.ENOSYS, unix.EOPNOTSUPP, unix.EINVAL, unix.EBADF, unix.EACCES, unix.EPERM:
		return &fs.PathError{Op: "flock", Err: noLockError{err}}
	}
	return os.NewSyscallError("flock", err)
}

type noLockError struct{ errno error }

func (e noLockError) Error() string   { return ErrNoLock.Error() + ": " + e.errno.Error() }
func (e noLockError) Unwrap() []error { return []error{ErrNoLock, e.errno} }

// ReadWhole reads the file whole, at most limit bytes (else ErrTooLarge), and only if a second look finds it as
// before described it (else ErrChanging).
func (f File) ReadWhole(before Stat, limit int) ([]byte, error) {
	if before.Size > int64(limit) {
		return nil, ErrTooLarge
	}
	data, err := f.read(int(before.Size) + 1) // one more, to meet the end: /proc has files of size 0 with content
	if err != nil {
		return nil, err
	}
	after, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !after.Unchanged(before) || int64(len(data)) != before.Size {
		return nil, ErrChanging
	}
	return data, nil
}

// read reads from the beginning until limit or the end of the file.
func (f File) read(limit int) ([]byte, error) {
	data := make([]byte, limit)
	n := 0
	for n < limit {
		m, err := ignoringEINTR(func() (int, error) { return unix.Pread(f.fd, data[n:], int64(n)) })
		if err != nil {
			return nil, os.NewSyscallError("pread", err)
		}
		if m == 0 {
			break
		}
		n += m
	}
	return data[:n], nil
}

// Inheritable returns a second descriptor of the same open file description, numbered min or above, that a child
// process or the successor of execve(2) inherits. The caller closes it with CloseNumber.
func (f File) Inheritable(min int) (int, error) {
	fd, err := unix.FcntlInt(uintptr(f.fd), unix.F_DUPFD, min)
	if err == unix.EINVAL {
		err = unix.EMFILE // min is above what this process may open
	}
	return fd, os.NewSyscallError("fcntl(F_DUPFD)", err)
}

// CloseNumber closes a descriptor that Inheritable returned.
func CloseNumber(fd int) error { return os.NewSyscallError("close", unix.Close(fd)) }

func openRetry(dir int, path string, flags int, mode uint32) (int, error) {
	return ignoringEINTR(func() (int, error) { return unix.Openat(dir, path, flags, mode) })
}

// ignoringEINTR repeats a call that a signal interrupted: Go's own preemption signals reach it on NFS and FUSE.
// A file with a lease answers EWOULDBLOCK at once, because everything here is opened with O_NONBLOCK.
func ignoringEINTR(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}

func fromStat(st *unix.Stat_t) Stat {
	out := Stat{
		Dev: uint64(st.Dev), Ino: uint64(st.Ino), Nlink: uint64(st.Nlink), Size: st.Size,
		Mtime: timespec(st.Mtim), Ctime: timespec(st.Ctim), Mode: uint32(st.Mode) & 0o777,
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		out.Kind = Regular
	case unix.S_IFDIR:
		out.Kind = Directory
	case unix.S_IFLNK:
		out.Kind = Symlink
	case unix.S_IFIFO:
		out.Kind = FIFO
	case unix.S_IFSOCK:
		out.Kind = Socket
	default:
		out.Kind = Device
	}
	return out
}

func timespec(t unix.Timespec) int64 { return int64(t.Sec)*int64(time.Second) + int64(t.Nsec) }
