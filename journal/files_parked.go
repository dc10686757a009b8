package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/heirlock/heirlock/internal/kernel"
)

// A journal may have more files than this process may open. Then all but the newest are parked: closed, and known by what
// Stat said. Each is opened again when its turn comes.

func park(files []openFile) {
	closeAll(files)
	for i := range files {
		files[i].parked = true
	}
}

// close closes a file that is open.
func (f *openFile) close() {
	if !f.parked {
		f.file.Close()
	}
}

var errRotatedAway = errors.New("it was rotated away before its turn came: with more files than descriptors it could not be kept open")

// opened is the file, open. A rotation moves a file to a higher number only, so it is looked for from its number upward.
func (f openFile) opened() (openFile, error) {
	if !f.parked {
		return f, nil
	}
	p, err := locate(f.journal)
	if err != nil {
		return f, err
	}
	defer p.dir.Close()
	err = p.upward(f.number, func(n int64) (bool, error) {
		now, err := p.open(generationName(p.name, n))
		if err == nil && f.is(now.stat) {
			f.file, f.parked = now.file, false
			return true, nil
		}
		if err == nil {
			now.file.Close()
		}
		return false, err
	})
	if err == nil && f.parked {
		err = &fs.PathError{Op: "open", Path: f.path, Err: fmt.Errorf("%w: %w", errRotatedAway, fs.ErrNotExist)}
	}
	return f, err
}

// is reports whether a file that was parked is this one. Its inode number may be another file's by now; but a generation
// is no longer written to.
func (f *openFile) is(st kernel.Stat) bool {
	ended := f.number > 0
	return f.stat.SameFile(st) && st.Size >= f.stat.Size && (!ended || st.Mtime == f.stat.Mtime)
}

// upward looks at the numbers from n on, until it is done or there are no more.
func (p place) upward(n int64, look func(n int64) (done bool, err error)) error {
	for misses := 0; ; n++ {
		if misses == missesMost {
			numbers, err := p.listed()
			if err != nil {
				return err
			}
			i := slices.IndexFunc(numbers, func(m int64) bool { return m >= n && !p.isForeign(m) })
			if i < 0 {
				return nil
			}
			n, misses = numbers[i], 0
		}
		done, err := look(n)
		if errors.Is(err, fs.ErrNotExist) {
			misses++
			continue
		}
		if done || err != nil {
			return err
		}
		misses = 0
	}
}
