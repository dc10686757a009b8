package journal

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/heirlock/heirlock"
	"github.com/heirlock/heirlock/internal/kernel"
)

// shelf is the directory with the files of one journal, and the active one open. The active file carries a flock, so
// that no second path to it, a hard link or a bind mount, gets a second writer.
type shelf struct {
	place
	files int    // at most
	bytes int64  // of one file, at most
	mode  uint32 // of the next file

	active      kernel.File
	stat        kernel.Stat // of the active file, when it was opened
	size        int64       // of the active file
	open        bool
	made        bool // a file was made since the shelf was located: the active one is it
	temporaries bool // unnamed files are not to be had here

	highest   int      // the highest number within the bound that a generation has, or had
	strays    []string // generations beyond the bound that somebody else made
	retained  int      // the active file and its generations
	oversized int      // of them, those over the bound: an older, larger one left them
	removed   int      // generations beyond the bound that were removed
	unsynced  int      // rotations since the last sync
	names     bool     // some came or went since the last sync
}

const (
	temporaryPrefix  = ".heirlock-"
	quarantineSuffix = ".quarantined-" // and a UUID; it is the longest
)

// otherWriter: the lock is ours, and yet somebody writes, by another path to the file.
type otherWriter struct{}

func (otherWriter) Error() string        { return "the file has another writer" }
func (otherWriter) Is(target error) bool { return target == heirlock.ErrHeld }

// generation is the name of the n-th generation, 0 for the active file.
func (s *shelf) generation(n int) string { return generationName(s.name, int64(n)) }

func (s *shelf) pathError(op, name string, err error) error {
	var p *fs.PathError
	var call *os.SyscallError
	if errors.As(err, &p) {
		op, err = p.Op, p.Err
	} else if errors.As(err, &call) {
		op, err = call.Syscall, call.Err
	}
	return &fs.PathError{Op: op, Path: s.prefix + name, Err: err}
}

// regular looks at a name. Nothing there is no error; what is there and is not a regular file is one.
func (s *shelf) regular(name string) (st kernel.Stat, found bool, err error) {
	st, err = s.dir.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return st, false, nil
	case err != nil:
		return st, false, s.pathError("stat", name, err)
	case st.Kind != kernel.Regular:
		return st, false, s.pathError("open", name, &kernel.NotRegularError{Kind: st.Kind})
	}
	return st, true, nil
}

// take opens the file that a look has found at the path, and makes it the active one. otherWriter if its flock is held: a
// child that was just forked holds it until its exec, so there are some looks.
func (s *shelf) take(seen kernel.Stat) error {
	f, st, err := s.dir.OpenAppend(s.name, seen)
	if err != nil {
		return s.pathError("open", s.name, err)
	}
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		err = f.Lock(true)
		if !errors.Is(err, kernel.ErrLocked) || time.Since(began) > 100*time.Millisecond {
			break
		}
	}
	if err == nil {
		st, err = f.Stat() // whoever held the flock may have written
	}
	if errors.Is(err, kernel.ErrNoLock) {
		err = nil // the lock beside it is what counts
	}
	if errors.Is(err, kernel.ErrLocked) {
		err = otherWriter{}
	}
	if err != nil {
		f.Close()
		return s.pathError("open", s.name, err)
	}
	s.become(f, st)
	return nil
}

func (s *shelf) become(f kernel.File, st kernel.Stat) {
	s.active, s.stat, s.size, s.open, s.mode = f, st, st.Size, true, st.Mode
}

// torn reports whether the active file ends within a line.
func (s *shelf) torn() (bool, error) {
	if s.size == 0 {
		return false, nil
	}
	var last [1]byte
	_, err := s.active.ReadAt(last[:], s.size-1)
	if err == io.EOF {
		return false, nil // cut just now: the next look finds it
	}
	return last[0] != '\n', err
}

// cutBack cuts off what lies behind so many bytes, and never makes the file longer: somebody may have cut it meanwhile.
//
//	fstat, [ftruncate]
func (s *shelf) cutBack(size int64) error {
	st, err := s.active.Stat()
	if err != nil {
		s.size = size
		return s.pathError("cut", s.name, err)
	}
	if s.size = st.Size; st.Size <= size {
		return nil
	}
	if err := s.active.Truncate(size); err != nil {
		return s.pathError("cut", s.name, err)
	}
	s.size = size
	return nil
}

// bear makes the next file, whole but for its name: with its flock, the mode and the owner of the one before it.
//
//	openat(O_TMPFILE) or openat(temporary, O_CREAT|O_EXCL), fstat, [fchmod], fstatfs, flock, fcntl(O_APPEND), [fchown]
func (s *shelf) bear() (n kernel.Newborn, err error) {
	for range 16 { // times that a sweeper is faster
		temporary := ""
		if s.temporaries {
			temporary = temporaryPrefix + newUUID()
		}
		n, err = s.dir.Bear(temporary, s.mode)
		if errors.Is(err, kernel.ErrNoUnnamed) && !s.temporaries {
			s.temporaries = true
		} else if !errors.Is(err, kernel.ErrNameGone) {
			break
		}
	}
	if err != nil {
		return n, s.pathError("create", s.name, err)
	}
	if err = n.Appending(); err == nil && s.open {
		err = n.Inherit(s.active)
	}
	if err != nil {
		n.Discard()
	}
	return n, err
}

// create puts a new file at the path, which is free.
func (s *shelf) create() error {
	n, err := s.bear()
	if err != nil {
		return err
	}
	return s.publish(n)
}

// publish gives a new file the name of the active one, and makes it that. Where unnamed files get no name it is born
// again, under a temporary one.
func (s *shelf) publish(n kernel.Newborn) error {
	ours, err := n.Publish(s.name)
	if !ours {
		n.Discard()
	}
	switch {
	case ours:
		s.become(n.File, n.Stat)
		s.names, s.made = true, true
		return nil
	case errors.Is(err, kernel.ErrNoUnnamed) && !s.temporaries:
		s.temporaries = true
		return s.create()
	case err == nil:
		err = fs.ErrExist
	}
	return s.pathError("link", s.name, err)
}

// count looks at the retained files.
func (s *shelf) count() error {
	names := slices.Clone(s.strays)
	for n := range s.highest + 1 {
		names = append(names, s.generation(n))
	}
	retained, oversized := 0, 0
	for _, name := range names {
		st, found, err := s.regular(name)
		if err != nil {
			return err
		}
		if found {
			retained++
			if st.Size > s.bytes {
				oversized++
			}
		}
	}
	s.retained, s.oversized = retained, oversized
	return nil
}

// newUUID is a UUID of version 4 (RFC 9562).
func newUUID() string {
	var u [16]byte
	_, _ = rand.Read(u[:]) // never fails
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	text := hex.EncodeToString(u[:])
	return fmt.Sprintf("%s-%s-%s-%s-%s", text[:8], text[8:12], text[12:16], text[16:20], text[20:])
}
