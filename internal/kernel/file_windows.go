package kernel

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// Dir is a directory by its absolute path: Windows has no calls relative to a directory here, but keeps an open
// directory from being renamed, so the handle is held.
type Dir struct {
	path   string
	handle windows.Handle
}

// File is an open file as a bare handle.
type File struct{ handle windows.Handle }

const shareAll = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE

func openHandle(path string, access, share, create, attributes uint32) (windows.Handle, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return windows.InvalidHandle, err
	}
	return windows.CreateFile(name, access, share, nil, create, attributes, 0)
}

// OpenDir opens a directory.
func OpenDir(path string) (Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return Dir{}, err
	}
	h, err := openHandle(abs, windows.GENERIC_READ, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS)
	if err != nil {
		return Dir{}, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	d := Dir{abs, h}
	if st, err := (File{h}).Stat(); err != nil || st.Kind != Directory {
		d.Close()
		return Dir{}, &fs.PathError{Op: "open", Path: path, Err: errors.Join(err, windows.ERROR_DIRECTORY)}
	}
	return d, nil
}

// Close closes the directory.
func (d Dir) Close() { windows.CloseHandle(d.handle) }

// Dup returns a second handle of the directory.
func (d Dir) Dup() (Dir, error) { return OpenDir(d.path) }

// Own describes the directory itself.
func (d Dir) Own() (Stat, error) { return File{d.handle}.Stat() }

func (d Dir) join(name string) string { return filepath.Join(d.path, name) }

// Stat describes what lies at a name, without following a reparse point.
func (d Dir) Stat(name string) (Stat, error) {
	h, err := openHandle(d.join(name), 0, shareAll, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS|windows.FILE_FLAG_OPEN_REPARSE_POINT)
	if err != nil {
		return Stat{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	f := File{h}
	defer f.Close()
	return f.Stat()
}

// Open opens the regular file that an earlier Stat described.
func (d Dir) Open(name string, seen Stat, _ bool) (File, Stat, error) {
	if seen.Kind != Regular {
		return File{}, Stat{}, &NotRegularError{seen.Kind}
	}
	h, err := openHandle(d.join(name), windows.GENERIC_READ, shareAll, windows.OPEN_EXISTING, windows.FILE_FLAG_OPEN_REPARSE_POINT)
	if err != nil {
		return File{}, Stat{}, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f := File{h}
	st, err := f.Stat()
	if err == nil && (!st.SameFile(seen) || st.Kind != Regular) {
		err = ErrChanging
	}
	if err != nil {
		f.Close()
		return File{}, Stat{}, err
	}
	return f, st, nil
}

// Unlink removes a name.
func (d Dir) Unlink(name string) error { return os.Remove(d.join(name)) }

// Sync: Windows journals names itself and offers no call for it.
func (d Dir) Sync() error { return nil }

// Names lists the directory.
func (d Dir) Names() ([]string, error) {
	f, err := os.Open(d.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// Filesystem: no evidence is drawn from it on this platform.
func (d Dir) Filesystem() (Filesystem, error) { return Filesystem{Scope: ScopeUnknown}, nil }

// Close closes the file.
func (f File) Close() { windows.CloseHandle(f.handle) }

// Stat describes the open file.
func (f File) Stat() (Stat, error) {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(f.handle, &info); err != nil {
		return Stat{}, os.NewSyscallError("GetFileInformationByHandle", err)
	}
	st := Stat{
		Dev: uint64(info.VolumeSerialNumber), Ino: uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow),
		Nlink: uint64(info.NumberOfLinks), Size: int64(info.FileSizeHigh)<<32 | int64(info.FileSizeLow),
		Mtime: info.LastWriteTime.Nanoseconds(), Mode: 0o600, Kind: Regular,
	}
	switch {
	case info.FileAttributes&windows.FILE_ATTRIBUTE_REPARSE_POINT != 0:
		st.Kind = Symlink
	case info.FileAttributes&windows.FILE_ATTRIBUTE_DIRECTORY != 0:
		st.Kind = Directory
	case info.FileAttributes&windows.FILE_ATTRIBUTE_DEVICE != 0:
		st.Kind = Device
	}
	return st, nil
}

// Filesystem: no evidence is drawn from it on this platform.
func (f File) Filesystem() (Filesystem, error) { return Filesystem{Scope: ScopeUnknown}, nil }

// Lock: no witness is taken here, so nothing is ever removed but by its owner.
func (f File) Lock(bool) error { return &fs.PathError{Op: "flock", Err: ErrNoLock} }

// ReadWhole reads the file whole, at most limit bytes.
func (f File) ReadWhole(before Stat, limit int) ([]byte, error) {
	if before.Size > int64(limit) {
		return nil, ErrTooLarge
	}
	data := make([]byte, before.Size+1)
	n := 0
	for n < len(data) {
		var done uint32
		err := windows.ReadFile(f.handle, data[n:], &done, nil)
		if err != nil {
			return nil, os.NewSyscallError("ReadFile", err)
		}
		if done == 0 {
			break
		}
		n += int(done)
	}
	after, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if int64(n) != before.Size || !after.Unchanged(before) {
		return nil, ErrChanging
	}
	return data[:n], nil
}

// Inheritable: handles are not handed on here.
func (f File) Inheritable(int) (int, error) { return -1, errors.ErrUnsupported }

// CloseNumber closes what Inheritable returned, which is nothing.
func CloseNumber(int) error { return errors.ErrUnsupported }

// Newborn is a file under a temporary name that will be linked to its own.
type Newborn struct {
	File
	Stat       Stat
	Filesystem Filesystem
	Flock      error
	Route      Route
	dir        Dir
	temporary  string
}

// Bear creates a file under the temporary name.
func (d Dir) Bear(temporary string, _ uint32) (n Newborn, err error) {
	if temporary == "" {
		return n, ErrNoUnnamed
	}
	h, err := openHandle(d.join(temporary), windows.GENERIC_READ|windows.GENERIC_WRITE, shareAll, windows.CREATE_NEW, windows.FILE_ATTRIBUTE_NORMAL)
	if err != nil {
		return n, &fs.PathError{Op: "create", Path: temporary, Err: err}
	}
	n = Newborn{File: File{h}, dir: d, temporary: temporary, Filesystem: Filesystem{Scope: ScopeUnknown}}
	n.Flock = n.Lock(true)
	if n.Stat, err = n.File.Stat(); err != nil {
		n.Discard()
		return n, err
	}
	return n, nil
}

// Overwrite: a file without a name, the only one that is made early, is not to be had here.
func (n *Newborn) Overwrite([]byte, int64, bool) error { return ErrNoUnnamed }

// Fill writes the content, whole or not at all.
func (n *Newborn) Fill(content []byte, durable bool) error {
	var done uint32
	err := windows.WriteFile(n.handle, content, &done, nil)
	if err == nil && int(done) < len(content) {
		err = io.ErrShortWrite
	}
	if err == nil && durable {
		err = windows.FlushFileBuffers(n.handle)
	}
	if err != nil {
		return &fs.PathError{Op: "write", Path: n.temporary, Err: err}
	}
	return nil
}

// Publish gives the file its name, if that is free, by a hard link.
func (n *Newborn) Publish(name string) (ours bool, err error) {
	n.Route = RouteLink
	callErr := os.Link(n.dir.join(n.temporary), n.dir.join(name))
	at, err := n.dir.Stat(name)
	switch {
	case err == nil && at.SameFile(n.Stat):
		_ = n.dir.Unlink(n.temporary)
		n.temporary = ""
		return true, nil
	case err == nil:
		return false, nil
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	case callErr == nil || errors.Is(callErr, fs.ErrExist):
		return false, ErrChanging
	case errors.Is(callErr, fs.ErrNotExist):
		return false, ErrNameGone
	}
	return false, callErr
}

// Discard gives the file up.
func (n *Newborn) Discard() {
	if n.temporary != "" {
		_ = n.dir.Unlink(n.temporary)
	}
	n.File.Close()
}
