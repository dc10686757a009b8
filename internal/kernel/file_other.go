//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package kernel

import (
	"errors"
	"fmt"
	"runtime"
)

var errNoFiles = fmt.Errorf("heirlock cannot lock on %s: %w", runtime.GOOS, errors.ErrUnsupported)

// Dir, File and Newborn do nothing here; OpenDir refuses first.
type (
	Dir     struct{}
	File    struct{}
	Newborn struct {
		File
		Stat       Stat
		Filesystem Filesystem
		Flock      error
		Route      Route
	}
)

func OpenDir(string) (Dir, error)                       { return Dir{}, errNoFiles }
func (Dir) Close()                                      {}
func (Dir) Stat(string) (Stat, error)                   { return Stat{}, errNoFiles }
func (Dir) Open(string, Stat, bool) (File, Stat, error) { return File{}, Stat{}, errNoFiles }
func (Dir) Unlink(string) error                         { return errNoFiles }
func (Dir) Dup() (Dir, error)                           { return Dir{}, errNoFiles }
func (Dir) Own() (Stat, error)                          { return Stat{}, errNoFiles }
func (Dir) Sync() error                                 { return errNoFiles }
func (Dir) Names() ([]string, error)                    { return nil, errNoFiles }
func (Dir) Filesystem() (Filesystem, error)             { return Filesystem{}, errNoFiles }
func (Dir) Bear(string, uint32) (Newborn, error)        { return Newborn{}, errNoFiles }
func (File) Close()                                     {}
func (File) Stat() (Stat, error)                        { return Stat{}, errNoFiles }
func (File) Filesystem() (Filesystem, error)            { return Filesystem{}, errNoFiles }
func (File) Lock(bool) error                            { return errNoFiles }
func (File) ReadWhole(Stat, int) ([]byte, error)        { return nil, errNoFiles }
func (File) Inheritable(int) (int, error)               { return -1, errNoFiles }
func (*Newborn) Overwrite([]byte, int64, bool) error    { return errNoFiles }
func (*Newborn) Fill([]byte, bool) error                { return errNoFiles }
func (*Newborn) Publish(string) (bool, error)           { return false, errNoFiles }
func (*Newborn) Discard()                               {}
func CloseNumber(int) error                             { return errNoFiles }
