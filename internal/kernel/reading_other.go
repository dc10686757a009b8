//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package kernel

// ReadAt: OpenDir has refused before.
func (File) ReadAt([]byte, int64) (int, error) { return 0, errNoFiles }
