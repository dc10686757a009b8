//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package kernel

func (Dir) OpenAppend(string, Stat) (File, Stat, error) { return File{}, Stat{}, errNoFiles }
func (Dir) RenameFree(string, string) error             { return errNoFiles }
func (File) Appending() error                           { return errNoFiles }
func (File) Append([]byte) (int, error)                 { return 0, errNoFiles }
func (File) Truncate(int64) error                       { return errNoFiles }
func (File) Sync() error                                { return errNoFiles }
func (File) Finish() error                              { return errNoFiles }
func (File) Inherit(File) error                         { return errNoFiles }
