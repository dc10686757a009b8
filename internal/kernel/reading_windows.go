package kernel

import (
	"io"
	"os"

	"golang.org/x/sys/windows"
)

// ReadAt reads len(p) bytes from an offset, as io.ReaderAt: fewer only with an error, io.EOF at the end of the file.
func (f File) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		at := off + int64(n)
		place := windows.Overlapped{Offset: uint32(at), OffsetHigh: uint32(at >> 32)}
		var done uint32
		err := windows.ReadFile(f.handle, p[n:min(len(p), n+1<<30)], &done, &place)
		if err == windows.ERROR_HANDLE_EOF || err == nil && done == 0 {
			return n, io.EOF
		}
		if err != nil {
			return n, os.NewSyscallError("ReadFile", err)
		}
		n += int(done)
	}
	return n, nil
}
