//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package kernel

import (
	"errors"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Newborn is a file that is made whole before it has its name. It is either unnamed (O_TMPFILE) or lies under a
// temporary name; in both cases it holds its flock, where the filesystem grants one, from before anybody
// can find it under the name it will be published at.
type Newborn struct {
	File
	Stat       Stat       // as the owner sees its own inode, before the record is written
	Filesystem Filesystem // of that inode
	Flock      error      // nil if the flock is held; else why there is none, ErrNoLock
	Route      Route      // how it got its name, once it has it
	dir        Dir
	temporary  string
}

// Bear creates a file without a name, or under the temporary name if temporary is not empty, with exactly
// this mode whatever the umask says, and takes its flock. ErrNoUnnamed asks for a temporary name; ErrNameGone says
// that a sweeper was faster, and to begin again.
//
//	openat(dir, ".", O_TMPFILE|O_RDWR|O_CLOEXEC, mode)      or openat(dir, temporary, O_CREAT|O_EXCL|O_NOFOLLOW|…)
//	fstat, [fchmod, fstat], fstatfs, flock(LOCK_EX|LOCK_NB)
func (d Dir) Bear(temporary string, mode uint32) (n Newborn, err error) {
	n = Newborn{dir: d, temporary: temporary}
	if temporary == "" {
		n.fd, err = openUnnamed(d.fd, mode)
	} else {
		n.fd, err = openRetry(d.fd, temporary, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
	}
	if errors.Is(err, ErrNoUnnamed) {
		return n, err
	}
	if err == unix.EPERM && d.removed() {
		err = unix.ENOENT // ext4 says EPERM for an unnamed file in a directory that was removed
	}
	if err != nil {
		return n, &fs.PathError{Op: "create", Path: temporary, Err: err}
	}
	if err := n.prepare(mode); err != nil {
		n.Discard()
		return n, err
	}
	return n, nil
}

func (d Dir) removed() bool {
	own, err := d.Own()
	return err == nil && own.Nlink == 0
}

func (n *Newborn) prepare(mode uint32) (err error) {
	defer func() {
		if n.temporary != "" && (errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESTALE)) {
			err = ErrNameGone // a FUSE server forgets an open file with its last name
		}
	}()
	if n.Stat, err = n.File.Stat(); err != nil {
		return err
	}
	if n.Stat.Mode != mode {
		if _, err := ignoringEINTR(func() (int, error) { return 0, unix.Fchmod(n.fd, mode) }); err != nil {
			return &fs.PathError{Op: "fchmod", Path: n.temporary, Err: err}
		}
	}
	if n.Filesystem, err = n.File.Filesystem(); err != nil {
		return err
	}
	n.Flock = n.File.Lock(true)
	if errors.Is(n.Flock, ErrLocked) {
		return ErrNameGone // a sweeper holds it, and will remove it
	}
	if n.Flock != nil && !errors.Is(n.Flock, ErrNoLock) {
		return n.Flock
	}
	if n.Flock == nil && n.Filesystem.Scope != ScopeLocal {
		return n.proveFlock()
	}
	return nil
}

// proveFlock finds out whether the flock will be seen through another name of the file. Below a FUSE filesystem two
// names of one file can be two inodes of this kernel with one inode number: the flock of the one says nothing about
// the other, and a record must not call it a witness. A local filesystem needs no proof.
//
//	linkat(temporary, probe), openat(probe), [are they one inode of this kernel?], unlinkat(probe)
func (n *Newborn) proveFlock() error {
	if n.temporary == "" {
		return ErrNoUnnamed // it has no name to link: begin again with one
	}
	probe := n.temporary + ProbeSuffix
	_, err := ignoringEINTR(func() (int, error) { return 0, unix.Linkat(n.dir.fd, n.temporary, n.dir.fd, probe, 0) })
	if swept(err) {
		return ErrNameGone
	}
	if err != nil {
		return nil // without links only a rename can publish it, and a rename keeps the inode
	}
	defer n.dir.Unlink(probe)
	fd, err := openRetry(n.dir.fd, probe, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if swept(err) {
		return ErrNameGone
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: probe, Err: err}
	}
	other := File{fd}
	defer other.Close()
	if !sameInode(n.File, other) {
		n.Flock = &fs.PathError{Op: "flock", Path: probe, Err: noLockError{errInvisible}}
	}
	return nil
}

// swept: a temporary name was removed by somebody who found its flock free.
func swept(err error) bool { return err == unix.ENOENT || err == unix.ESTALE }

var errInvisible = errors.New("it is not seen through another name of the file")

// Fill writes the content, whole or not at all. With durable it is on the disk when Fill returns; so it is, too,
// on a filesystem that is not known to be local, where other machines would see the name before the bytes.
func (n *Newborn) Fill(content []byte, durable bool) error { return n.Overwrite(content, 0, durable) }

// Overwrite writes a part of the content, as Fill.
func (n *Newborn) Overwrite(content []byte, at int64, durable bool) error {
	for done := 0; done < len(content); {
		m, err := ignoringEINTR(func() (int, error) { return unix.Pwrite(n.fd, content[done:], at+int64(done)) })
		if err == nil && m == 0 {
			err = io.ErrShortWrite
		}
		if err != nil {
			return &fs.PathError{Op: "write", Path: n.temporary, Err: err}
		}
		done += m
	}
	if durable || n.Filesystem.Scope != ScopeLocal {
		if err := fdatasync(n.fd); err != nil {
			return &fs.PathError{Op: "fdatasync", Path: n.temporary, Err: err}
		}
	}
	return nil
}

// Publish gives the file its name, if that is free. Whatever the publishing call answered, the name is then
// compared with the descriptor: ours is true exactly if the name leads to this file. If it does not,
// err is nil where another file has the name, ErrChanging where the name is free again, ErrNameGone
// where the temporary name was swept, ErrNoUnnamed where a temporary name is needed, else why no name
// could be given.
func (n *Newborn) Publish(name string) (ours bool, err error) {
	var callErr error
	if n.temporary == "" {
		n.Route = RouteUnnamed
		callErr = linkUnnamed(n.fd, n.dir.fd, name)
	} else {
		callErr = n.renameOrLink(name)
	}
	at, err := n.dir.Stat(name)
	switch {
	case err == nil && at.SameFile(n.Stat):
		n.forgetTemporary()
		return true, nil
	case err == nil && (callErr == nil || callErr == unix.EEXIST || callErr == unix.ENOTEMPTY):
		return false, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		if callErr == nil || n.linked() {
			n.forgetTemporary()
			return true, nil // the kernel said so; that it does not say it again changes nothing
		}
		return false, err
	case callErr == nil || callErr == unix.EEXIST:
		return false, ErrChanging
	case errors.Is(callErr, ErrNoUnnamed):
		return false, callErr
	case callErr == unix.ENOENT && n.temporary != "":
		return false, ErrNameGone // or the directory is gone, which the next Bear will say
	case err == nil:
		return false, nil
	}
	return false, &fs.PathError{Op: "link", Path: name, Err: callErr}
}

// linked reports whether a file that was born unnamed has a name by now.
func (n *Newborn) linked() bool {
	st, err := n.File.Stat()
	return n.temporary == "" && err == nil && st.Nlink > 0
}

// renameOrLink publishes a named temporary without ever replacing what has the name: renameat2(RENAME_NOREPLACE)
// or renamex_np(RENAME_EXCL) where the filesystem knows them, else link(2). There is no fall-back beyond: a plain
// rename would replace, and an exclusive create would be a lock without an owner for a moment.
func (n *Newborn) renameOrLink(name string) error {
	n.Route = RouteRename
	err := renameExclusive(n.dir.fd, n.temporary, name)
	if err == unix.EINVAL || err == unix.ENOSYS || err == unix.EOPNOTSUPP || err == unix.ENOTSUP {
		n.Route = RouteLink
		_, err = ignoringEINTR(func() (int, error) { return 0, unix.Linkat(n.dir.fd, n.temporary, n.dir.fd, name, 0) })
	}
	return err
}

// forgetTemporary removes the other name of a link; a sweeper finds it if this fails.
func (n *Newborn) forgetTemporary() {
	if n.temporary != "" && n.Route == RouteLink {
		n.removeTemporary()
	}
	n.temporary = ""
}

// removeTemporary removes the temporary name while this process holds the file's flock.
func (n *Newborn) removeTemporary() {
	if at, err := n.dir.Stat(n.temporary); err == nil && at.SameFile(n.Stat) {
		_ = n.dir.Unlink(n.temporary)
	}
}

// Discard gives the file up: nothing of it stays behind.
func (n *Newborn) Discard() {
	if n.temporary != "" {
		n.removeTemporary()
	}
	n.File.Close()
}
