//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package kernel

import (
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// OpenAppend opens the regular file that an earlier Stat described, and only that, for reading and for appending. It
// follows no link and waits for nobody; ErrChanging if the name leads elsewhere by now.
func (d Dir) OpenAppend(name string, seen Stat) (File, Stat, error) {
	if seen.Kind != Regular {
		return File{-1}, Stat{}, &fs.PathError{Op: "open", Path: name, Err: &NotRegularError{seen.Kind}}
	}
	const flags = unix.O_RDWR | unix.O_APPEND | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := openRetry(d.fd, name, flags, 0)
	switch err {
	case nil:
	case unix.EWOULDBLOCK:
		return File{-1}, Stat{}, ErrLeased
	case unix.ELOOP, unix.EMLINK:
		return File{-1}, Stat{}, ErrChanging // it was regular a moment ago
	default:
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

// Appending makes every write of a newborn file go to its end, wherever that is by then: fcntl(2) F_SETFL O_APPEND.
func (f File) Appending() error {
	flags, err := unix.FcntlInt(uintptr(f.fd), unix.F_GETFL, 0)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(f.fd), unix.F_SETFL, flags|unix.O_APPEND)
	}
	return os.NewSyscallError("fcntl(F_SETFL)", err)
}

// Append writes at the end of the file. It returns how much was written before the error, if there is one.
func (f File) Append(p []byte) (done int, err error) {
	for done < len(p) {
		n, err := ignoringEINTR(func() (int, error) { return unix.Write(f.fd, p[done:]) })
		if err == nil && n == 0 {
			err = io.ErrShortWrite
		}
		if err != nil {
			return done, os.NewSyscallError("write", err)
		}
		done += n
	}
	return done, nil
}

// Truncate cuts the file.
func (f File) Truncate(size int64) error {
	_, err := ignoringEINTR(func() (int, error) { return 0, unix.Ftruncate(f.fd, size) })
	return os.NewSyscallError("ftruncate", err)
}

// Sync makes the content of the file durable.
func (f File) Sync() error { return os.NewSyscallError("fdatasync", fdatasync(f.fd)) }

// Finish closes the file and says what network filesystems and quotas say only then about what was written. Whatever
// it says, the descriptor is gone; an EINTR means no more than that.
func (f File) Finish() error {
	if err := unix.Close(f.fd); err != unix.EINTR {
		return os.NewSyscallError("close", err)
	}
	return nil
}

// Inherit gives the file the owner and group of another, where this process may do that: as root, elsewhere a file has
// the owner that it was born with.
func (f File) Inherit(other File) error {
	var own, from unix.Stat_t
	if err := unix.Fstat(f.fd, &own); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if err := unix.Fstat(other.fd, &from); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if own.Uid == from.Uid && own.Gid == from.Gid {
		return nil
	}
	_, err := ignoringEINTR(func() (int, error) { return 0, unix.Fchown(f.fd, int(from.Uid), int(from.Gid)) })
	if err == unix.EPERM || err == unix.EINVAL { // not root, or the owner has no number in this user namespace
		return nil
	}
	return os.NewSyscallError("fchown", err)
}

// RenameFree renames a file to a name that is free, and never over another file: fs.ErrExist. Where no rename can
// promise that, it is link and unlink, and a crash between them leaves both names.
func (d Dir) RenameFree(from, to string) error {
	err := renameExclusive(d.fd, from, to)
	if err == unix.EINVAL || err == unix.ENOSYS || err == unix.EOPNOTSUPP || err == unix.ENOTSUP {
		_, err = ignoringEINTR(func() (int, error) { return 0, unix.Linkat(d.fd, from, d.fd, to, 0) })
		if err == nil {
			if err := d.Unlink(from); err != nil {
				_ = d.Unlink(to)
				return err
			}
		}
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
