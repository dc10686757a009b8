package journal

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/heirlock/heirlock/internal/kernel"
)

// rotate makes the active file the first generation and begins a new one. The new one is there, without its name,
// before anything is removed; then the oldest goes if no number is free, names move up, only as far as the first free
// number, and the new file gets its name. What fails is undone, and only the oldest may then be missing. A crash
// leaves at most the path itself free. With one file, the oldest is the active one.
//
//	bear, fstatat name.1 … (which is free?), [unlinkat name.N-1], renameat2 name.k-1 name.k … renameat2 name name.1,
//	linkat, close
//
// No step replaces a file: the renames are RENAME_NOREPLACE. It may be done and yet fail, in the close of the old file.
func (s *shelf) rotate() (done bool, err error) {
	n, err := s.bear()
	if err != nil {
		return false, err
	}
	moved, err := s.shift()
	old := s.active
	if err == nil {
		err = s.publish(n)
	} else {
		n.Discard()
	}
	if err != nil {
		return false, errors.Join(err, s.unshift(moved), s.count())
	}
	s.unsynced++
	err = s.count()
	if closed := old.Finish(); closed != nil {
		err = errors.Join(err, s.pathError("close", s.generation(1), closed))
	}
	return true, err
}

// shift makes the path free. It returns how many names have moved up by one, also with an error: those that end with
// the first free number.
func (s *shelf) shift() (moved []int, err error) {
	free := s.files - 1
	for n := 1; n < s.files; n++ {
		if _, found, err := s.regular(s.generation(n)); err != nil {
			return nil, err
		} else if !found {
			free = n
			break
		}
	}
	s.names, s.highest = true, max(s.highest, free)
	if _, found, err := s.regular(s.generation(free)); err != nil {
		return nil, err
	} else if found {
		if err := s.dir.Unlink(s.generation(free)); err != nil {
			return nil, s.pathError("unlink", s.generation(free), err)
		}
	}
	for n := free; n >= 1; n-- {
		if err := s.dir.RenameFree(s.generation(n-1), s.generation(n)); err != nil {
			return moved, err
		}
		moved = append(moved, n)
	}
	return moved, nil
}

// unshift moves names back.
func (s *shelf) unshift(moved []int) error {
	for i := len(moved) - 1; i >= 0; i-- {
		if err := s.dir.RenameFree(s.generation(moved[i]), s.generation(moved[i]-1)); err != nil {
			return fmt.Errorf("and it could not be undone: %w", err)
		}
	}
	return nil
}

// whereabouts is what a look at the active file's name has found.
type whereabouts struct {
	displaced bool // the name is free, or leads to another file
	truncated bool // the file is shorter than it was written
	rotated   bool
}

// check looks, before frames are appended, whether somebody else has laid hands on the active file. One that is
// displaced is left where it is, and another begun; one that was cut or written to is taken as it is now, and rotated
// if it ends within a line, whatever its size. The size is that of the descriptor: by its name, a FUSE filesystem may
// show an older one.
//
//	fstatat, fstat, pread64
func (s *shelf) check() (w whereabouts, err error) {
	at, err := s.dir.Stat(s.name)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && !at.SameFile(s.stat):
		return whereabouts{displaced: true}, s.replace(at, err == nil)
	case err != nil:
		return w, s.pathError("stat", s.name, err)
	}
	own, err := s.active.Stat()
	if err != nil {
		return w, err
	}
	w.truncated = own.Size < s.size
	s.size = own.Size
	if torn, err := s.torn(); err != nil || !torn {
		return w, err
	}
	if s.files == 1 {
		return w, s.replace(own, true) // to rotate it would remove it
	}
	w.rotated, err = s.rotate()
	return w, err
}

// replace begins a new file at a path at which the active one is not, or not fit to be. An empty file that somebody put
// there for us, as logrotate does, is taken. Anything else there is not ours: it is set aside, under a name that is
// never read, counted or deleted.
//
//	fdatasync, [openat, flock, fstat | renameat2 name name.quarantined-UUID], linkat, close
func (s *shelf) replace(at kernel.Stat, found bool) error {
	old := s.active
	if err := old.Sync(); err != nil { // a later Sync does not find it any more
		return err
	}
	taken := found && at.Kind == kernel.Regular && at.Size == 0 && at.Nlink == 1 && s.take(at) == nil
	if taken && s.size > 0 {
		s.active.Close() // somebody began to write to it
		s.active, taken = old, false
	}
	var err error
	if !taken && found {
		err = s.dir.RenameFree(s.name, s.name+quarantineSuffix+newUUID())
	}
	if !taken && err == nil {
		err = s.create()
	}
	if err != nil {
		return errors.Join(err, s.recount())
	}
	s.names = true
	err = s.recount()
	if closed := old.Finish(); closed != nil {
		err = errors.Join(err, s.pathError("close", s.name, closed))
	}
	return err
}

// recount counts after somebody else moved files: he may have made generations of them, beyond the bound too.
func (s *shelf) recount() error {
	strays, err := s.beyond()
	if err == nil { // a directory that cannot be listed keeps nobody from writing
		s.strays = strays
	}
	return s.count()
}

// sync makes everything durable that was written since the last sync: the generations that were rotated meanwhile, the
// active file, and the names.
//
//	[openat, fdatasync, close of each] fdatasync [fsync of the directory]
func (s *shelf) sync() error {
	for n := 1; n <= min(s.unsynced, s.files-1); n++ {
		if err := s.syncGeneration(s.generation(n)); err != nil {
			return err
		}
	}
	if err := s.active.Sync(); err != nil {
		return s.pathError("sync", s.name, err)
	}
	if s.names {
		if err := s.dir.Sync(); err != nil {
			return err
		}
	}
	s.unsynced, s.names = 0, false
	return nil
}

func (s *shelf) syncGeneration(name string) error {
	st, found, err := s.regular(name)
	if err != nil || !found { // removed by somebody else: there is nothing to keep
		return err
	}
	f, _, err := s.dir.OpenAppend(name, st)
	if err != nil {
		return s.pathError("open", name, err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return s.pathError("sync", name, err)
	}
	return nil
}
