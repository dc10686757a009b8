package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// generationsMost bounds MaxFiles: see generationNumber.
const generationsMost = 1_000_000

// errTornTail: with one file, to rotate it would be to remove it, and to append to it would glue a frame to the torn one.
var errTornTail = errors.New("the file ends within a line, and MaxFiles 1 leaves no place to keep it: " +
	"move it away, or allow more files")

// begin makes the files ready for a new epoch, under the lock of the journal and the flock of the active file: it removes
// generations beyond the bound, rotates an active file that has a second link or ends within a line, and creates one
// where there is none. What it finds wrong before that it leaves untouched.
func (s *shelf) begin() (torn, rotated bool, err error) {
	beyond, err := s.beyond()
	if err != nil {
		return false, false, err
	}
	st, found, err := s.regular(s.name)
	if err == nil && found {
		err = s.take(st)
	}
	if err == nil && found {
		torn, err = s.torn()
	}
	if err == nil && torn && s.files == 1 {
		err = s.pathError("open", s.name, errTornTail)
	}
	if err != nil {
		return torn, false, err
	}
	for _, name := range beyond {
		switch err := s.dir.Unlink(name); {
		case err == nil:
			s.removed++
		case !errors.Is(err, fs.ErrNotExist):
			return torn, false, s.pathError("unlink", name, err)
		}
		s.names = true
	}
	if err := s.mend(); err != nil {
		return torn, false, err
	}
	switch rotated = s.open && (torn || s.stat.Nlink > 1); {
	case rotated:
		rotated, err = s.rotate()
	case !s.open:
		err = s.create()
	}
	if err == nil && !rotated {
		err = s.count()
	}
	return torn, rotated, err
}

// mend ends a rename that was made of link and unlink and was cut short between them: of two numbers that are one file,
// the higher is its place.
func (s *shelf) mend() error {
	for n := 0; n < s.files-1; n++ {
		at, found, err := s.regular(s.generation(n))
		if err != nil || !found {
			return err // the numbers behind the first free one were not on the move
		}
		next, found, err := s.regular(s.generation(n + 1))
		if err != nil {
			return err
		}
		if !found || !at.SameFile(next) {
			continue
		}
		if err := s.dir.Unlink(s.generation(n)); err != nil {
			return s.pathError("unlink", s.generation(n), err)
		}
		if s.names = true; n == 0 {
			s.active.Close()
			s.open = false
		}
	}
	return nil
}

// beyond lists the generations beyond the bound, of which it leaves out what is not ours or not for us to read, and
// makes sure that every generation is a regular file.
func (s *shelf) beyond() ([]string, error) {
	numbers, err := s.listed()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, n := range numbers {
		name := generationName(s.name, n)
		if _, _, err := s.regular(name); err != nil {
			return nil, err
		}
		if n < int64(s.files) {
			s.highest = max(s.highest, int(n))
			continue
		}
		ours, err := s.isOurs(name)
		if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if ours {
			names = append(names, name)
		}
	}
	return names, nil
}

// inspect reads all that is retained, oldest first, but for the file that was just made.
func (s *shelf) inspect(frameMost int) (Report, error) {
	files, err := s.eachOnce()
	if err != nil {
		return Report{}, err
	}
	opts := ReadOptions[jsontext.Value]{MaxLineBytes: max(maxLineDefault, frameMost)}
	report, err := inspectFiles(context.Background(), files, opts)
	if err != nil {
		return Report{}, fmt.Errorf("inspecting the retained files: %w", err)
	}
	return report, nil
}

// eachOnce finds the retained files, oldest first; of several names of one file the newest. They are parked: there may be
// more than descriptors.
func (s *shelf) eachOnce() (files []openFile, err error) {
	numbers, err := s.listed()
	if err != nil {
		return nil, err
	}
	type inode struct{ dev, ino uint64 }
	seen := map[inode]bool{}
	for _, n := range numbers {
		name := generationName(s.name, n)
		st, found, err := s.regular(name)
		if err != nil {
			return nil, err
		}
		id := inode{st.Dev, st.Ino}
		if !found || n >= int64(s.files) || n == 0 && s.made || seen[id] {
			continue
		}
		seen[id] = true
		files = append(files, openFile{path: s.prefix + name, journal: s.prefix + s.name, number: n, stat: st, parked: true})
	}
	slices.Reverse(files)
	return files, nil
}
