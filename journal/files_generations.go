package journal

import (
	"fmt"
	"io/fs"

	"github.com/heirlock/heirlock/internal/kernel"
)

// missesMost is how many names in a row are missing before the directory is listed: a name is missing for a moment
// while a rotation shifts the names.
const missesMost = 16

// generations opens the file and its generations, newest first, up to one that is known; each inode once.
//
// A rotation renames the oldest file first, and each to the next higher number. So a scan upward misses nothing that was
// there when it began: what has not been opened yet has the number that comes next, or a higher one. It goes on past the
// highest number until no more are there. What was made after it began is not wanted, and would be found behind older
// files if as many rotations as there are numbers overtook the scan: then the scan begins again.
func (p place) generations(known func(kernel.Stat) bool) ([]openFile, error) {
	for range looks {
		s := scan{place: p, known: known}
		err := s.run()
		if err == nil {
			return s.found, nil
		}
		closeAll(s.found)
		if err != kernel.ErrChanging {
			return nil, err
		}
	}
	return nil, &fs.PathError{Op: "open", Path: p.prefix + p.name, Err: fmt.Errorf("rotated each time it was looked at: %w", kernel.ErrChanging)}
}

type scan struct {
	place
	known func(kernel.Stat) bool
	found []openFile
	front int64 // the number where found[0] was last seen
}

func (s *scan) run() error {
	return s.upward(0, func(n int64) (bool, error) {
		f, err := s.open(generationName(s.name, n))
		if err != nil {
			return false, err
		}
		if s.known(f.stat) {
			f.file.Close()
			return true, nil
		}
		f.number = n
		return false, s.add(f, n)
	})
}

// add keeps a file that was found at a number, unless it was found before.
func (s *scan) add(f openFile, n int64) error {
	for i := range s.found {
		if s.found[i].stat.SameFile(f.stat) {
			f.file.Close()
			return nil
		}
	}
	s.found = append(s.found, f)
	if len(s.found) == 1 {
		s.front = n
		return nil
	}
	if s.few {
		park(s.found[len(s.found)-1:])
	}
	// As long as the first file is not above this one, nothing newer than the first can be this one.
	for tries := 0; s.front <= n && tries < 1<<10; tries++ {
		st, err := s.dir.Stat(generationName(s.name, s.front))
		if err == nil && st.SameFile(s.found[0].stat) {
			return nil
		}
		s.front++
	}
	return kernel.ErrChanging
}
