package journal

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// sliceFiles bounds the descriptors of a recovery.
const sliceFiles = 4

// inspect reads all that is retained, oldest first, some files at a time: there may be more than descriptors. Nobody
// rotates them meanwhile; what somebody else moved or removed is not there.
func (s *shelf) inspect(frameMost int) (Report, error) {
	numbers, err := s.eachOnce()
	if err != nil {
		return Report{}, err
	}
	opts := ReadOptions[jsontext.Value]{MaxLineBytes: max(maxLineDefault, frameMost)}
	sum := summary{Report: Report{Files: len(numbers), Reasons: map[string]uint64{}}}
	for some := range slices.Chunk(numbers, sliceFiles) {
		if err := s.inspectSome(&sum, some, opts); err != nil {
			return Report{}, fmt.Errorf("inspecting the retained files: %w", err)
		}
	}
	return sum.Report, nil
}

func (s *shelf) inspectSome(sum *summary, numbers []int64, opts ReadOptions[jsontext.Value]) error {
	var files []openFile
	defer func() { closeAll(files) }()
	for _, n := range numbers {
		f, err := s.place.open(generationName(s.name, n))
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	return sum.addFiles(files, opts)
}

// addFiles adds up files that follow those that were added before.
func (s *summary) addFiles(files []openFile, opts ReadOptions[jsontext.Value]) error {
	workers := min(runtime.GOMAXPROCS(0), workersMost)
	ctx, cancel := context.WithCancel(context.Background())
	v := inspection{files: files, opts: opts, work: make(chan *part, workers), order: make(chan *part, workers+2), free: make(chan []byte, workers+2)}
	for range cap(v.free) {
		v.free <- nil
	}
	for range workers {
		go v.inspect()
	}
	go v.cut(ctx)
	defer v.giveUp(cancel)
	for p := range v.order {
		<-p.done
		if p.err != nil {
			return p.err
		}
		s.add(p)
		v.free <- p.buf
	}
	return nil
}

// eachOnce lists the numbers of the retained files, oldest first; of several names of one file the newest. It leaves out
// the file that was just made.
func (s *shelf) eachOnce() ([]int64, error) {
	listed, err := s.listed()
	if err != nil {
		return nil, err
	}
	type inode struct{ dev, ino uint64 }
	seen, numbers := map[inode]bool{}, listed[:0]
	for _, n := range listed {
		st, found, err := s.regular(generationName(s.name, n))
		if err != nil {
			return nil, err
		}
		if n == 0 && s.made {
			continue
		}
		if id := (inode{st.Dev, st.Ino}); found && n < int64(s.files) && !seen[id] {
			seen[id] = true
			numbers = append(numbers, n)
		}
	}
	slices.Reverse(numbers)
	return numbers, nil
}
