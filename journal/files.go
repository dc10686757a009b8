package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/heirlock/heirlock/internal/kernel"
)

// Files lists the retained files of the journal at a path, oldest first: its generations, and the file at path if there
// is one. A file with a number behind sixteen missing ones that is not empty and does not begin as a journal's is none. No
// file at all is fs.ErrNotExist. It is advisory: a writer may rotate them at any time, and what lies at a name is for
// the reading to find out. See ReadOptions.Generations for reading beside a writer.
func Files(path string) ([]string, error) {
	p, err := locate(path)
	if err != nil {
		return nil, err
	}
	defer p.dir.Close()
	numbers, err := p.listed()
	if err != nil {
		return nil, err
	}
	numbers = p.withoutForeign(numbers)
	if len(numbers) == 0 {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	files := make([]string, 0, len(numbers))
	for _, n := range slices.Backward(numbers) {
		files = append(files, p.prefix+generationName(p.name, n))
	}
	return files, nil
}

// generationName is the name of a generation; 0 is the active file.
func generationName(name string, n int64) string {
	if n == 0 {
		return name
	}
	return name + "." + strconv.FormatInt(n, 10)
}

// generationNumber is the inverse of generationName: a generation is a dot and a canonical positive decimal. One of more
// than six digits is none: it is a date that somebody else appended.
func generationNumber(name, candidate string) (int64, bool) {
	suffix, ok := strings.CutPrefix(candidate, name)
	if !ok || suffix == "" {
		return 0, ok
	}
	if len(suffix) < 2 || len(suffix) > len(".999999") || suffix[0] != '.' || suffix[1] == '0' {
		return 0, false
	}
	var n int64
	for _, c := range []byte(suffix[1:]) {
		if c -= '0'; c > 9 {
			return 0, false
		}
		n = n*10 + int64(c)
	}
	return n, true
}

// place is the path of a journal, with its parent open.
type place struct {
	dir    kernel.Dir
	prefix string // what the path has before the name
	name   string
	few    bool // descriptors are few: of a scan, only the newest file stays open
}

func locate(path string) (place, error) {
	i := len(path)
	for i > 0 && !os.IsPathSeparator(path[i-1]) {
		i--
	}
	p := place{prefix: path[:i], name: path[i:]}
	if p.name == "" || p.name == "." || p.name == ".." || strings.IndexByte(path, 0) >= 0 {
		return p, &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("the path names no file: %w", syscall.EINVAL)}
	}
	parent := p.prefix
	if parent == "" {
		parent = "."
	}
	var err error
	if p.dir, err = kernel.OpenDir(parent); err != nil {
		return p, atPath(path, err)
	}
	return p, nil
}

// atPath says the whole path in an error about a name.
func atPath(path string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return &fs.PathError{Op: p.Op, Path: path, Err: p.Err}
	}
	return &fs.PathError{Op: "open", Path: path, Err: err}
}

// listed lists the numbers of what the directory has, ascending; 0 is the active file.
func (p place) listed() ([]int64, error) {
	names, err := p.dir.Names()
	if err != nil {
		return nil, atPath(p.prefix+p.name, err)
	}
	var numbers []int64
	for _, name := range names {
		if n, ok := generationNumber(p.name, name); ok {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// looks bounds how often something that changes while it is looked at is looked at again.
const looks = 16

// open opens what lies at a name, if it is a regular file.
func (p place) open(name string) (openFile, error) {
	f := openFile{path: p.prefix + name, journal: p.prefix + p.name}
	err := error(kernel.ErrChanging)
	for i := 0; i < looks && errors.Is(err, kernel.ErrChanging); i++ {
		var seen kernel.Stat
		if seen, err = p.dir.Stat(name); err == nil {
			f.file, f.stat, err = p.dir.Open(name, seen, false)
		}
	}
	if err != nil {
		return openFile{}, atPath(f.path, err)
	}
	return f, nil
}

// openPaths opens everything that is to be read, in the order of reading.
func openPaths(paths []string, generations bool) (files []openFile, err error) {
	defer func() {
		if err != nil {
			closeAll(files)
			files = nil
		}
	}()
	few := false
	for _, path := range paths {
		some, err := openPath(path, generations, few)
		if kernel.OutOfDescriptors(err) && !few {
			few = true
			park(files)
			some, err = openPath(path, generations, few)
		}
		if err != nil {
			return files, err
		}
		if few {
			park(files)
		}
		files = append(files, some...)
	}
	return files, nil
}

func openPath(path string, generations, few bool) ([]openFile, error) {
	p, err := locate(path)
	if err != nil {
		return nil, err
	}
	defer p.dir.Close()
	if p.few = few; generations {
		return p.retained()
	}
	f, err := p.open(p.name)
	if err != nil {
		return nil, err
	}
	return []openFile{f}, nil
}

// retained opens all the files of a journal, oldest first. There is at least one.
func (p place) retained() ([]openFile, error) {
	files, err := p.generations(func(kernel.Stat) bool { return false })
	if err == nil && len(files) == 0 {
		_, err = p.open(p.name)
		if err == nil {
			err = kernel.ErrChanging
		}
	}
	if err != nil {
		return nil, err
	}
	slices.Reverse(files)
	files[0].first, files[len(files)-1].live = true, true
	return files, nil
}
