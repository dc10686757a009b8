//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package kernel

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// ReadAt reads len(p) bytes from an offset, as io.ReaderAt: fewer only with an error, io.EOF at the end of the file.
func (f File) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		m, err := ignoringEINTR(func() (int, error) { return unix.Pread(f.fd, p[n:], off+int64(n)) })
		if err != nil {
			return n, os.NewSyscallError("pread", err)
		}
		if m == 0 {
			return n, io.EOF
		}
		n += m
	}
	return n, nil
}
