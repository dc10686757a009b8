package kernel

import (
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// OpenAppend opens the regular file that an earlier Stat described, and only that, for reading and for appending.
func (d Dir) OpenAppend(name string, seen Stat) (File, Stat, error) {
	if seen.Kind != Regular {
		return File{}, Stat{}, &fs.PathError{Op: "open", Path: name, Err: &NotRegularError{seen.Kind}}
	}
	h, err := openHandle(d.join(name), windows.GENERIC_READ|windows.GENERIC_WRITE, shareAll, windows.OPEN_EXISTING, windows.FILE_FLAG_OPEN_REPARSE_POINT)
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

// Appending: Append says itself where it writes.
func (f File) Appending() error { return nil }

// Append writes at the end of the file. It returns how much was written before the error, if there is one.
func (f File) Append(p []byte) (done int, err error) {
	for done < len(p) {
		// WriteFile: both halves of the offset 0xFFFFFFFF mean the end of the file.
		end := windows.Overlapped{Offset: ^uint32(0), OffsetHigh: ^uint32(0)}
		var n uint32
		err := windows.WriteFile(f.handle, p[done:], &n, &end)
		if err == nil && n == 0 {
			err = io.ErrShortWrite
		}
		if err != nil {
			return done, os.NewSyscallError("WriteFile", err)
		}
		done += int(n)
	}
	return done, nil
}

// Truncate cuts the file.
func (f File) Truncate(size int64) error {
	return os.NewSyscallError("SetEndOfFile", windows.Ftruncate(f.handle, size))
}

// Sync makes the content of the file durable.
func (f File) Sync() error {
	return os.NewSyscallError("FlushFileBuffers", windows.FlushFileBuffers(f.handle))
}

// Finish closes the file.
func (f File) Finish() error {
	return os.NewSyscallError("CloseHandle", windows.CloseHandle(f.handle))
}

// Inherit: a file has the owner that it was born with.
func (f File) Inherit(File) error { return nil }

// RenameFree renames a file to a name that is free, and never over another file.
func (d Dir) RenameFree(from, to string) error {
	old, err := windows.UTF16PtrFromString(d.join(from))
	if err != nil {
		return err
	}
	name, err := windows.UTF16PtrFromString(d.join(to))
	if err != nil {
		return err
	}
	if err := windows.MoveFileEx(old, name, 0); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
