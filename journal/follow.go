package journal

import (
	"context"
	"io/fs"
	"slices"
	"time"

	"github.com/heirlock/heirlock/internal/kernel"
)

// followEvery is how often a followed file is looked at. There is one file to ask, and nothing is open for it on the
// side of the writer.
const followEvery = 100 * time.Millisecond

// follow reads what is there, and then what comes, until the context ends.
func (r *reader[T]) follow(paths []string) error {
	last := len(paths) - 1
	files, err := openPaths(paths[:last], true)
	defer func() { closeAll(files) }()
	if err != nil {
		return err
	}
	p, err := locate(paths[last])
	if err != nil {
		return err
	}
	defer p.dir.Close()
	f := follower[T]{reader: r, place: p}
	defer func() { closeAll(f.before); closeAll(f.queue) }()
	if err := f.look(); err != nil { // before the first record
		return err
	}
	for len(files) > 0 {
		if err := r.file(files[0]); err != nil {
			return err
		}
		files[0].file.Close()
		files = files[1:]
	}
	for {
		if err := f.advance(); err != nil {
			return err
		}
		if err := r.pause(); err != nil {
			return err
		}
		if err := f.look(); err != nil {
			return err
		}
	}
}

// follower follows one journal. The newest file grows; when there is a newer one, a rotation has ended it.
type follower[T any] struct {
	*reader[T]
	place   place
	queue   []openFile // from the one that is being read to the newest
	current *lines     // of queue[0], or nil if it has not been begun
	// before is the file before queue[0], or none. It stays open, so that no other file can get its inode number, and is
	// known when the scan for newer files meets it: the current one may have been removed.
	before []openFile
}

// look queues the files that are newer than the newest.
func (f *follower[T]) look() error {
	if len(f.queue) > 0 {
		st, err := f.place.dir.Stat(f.place.name)
		if err == nil && st.SameFile(f.queue[len(f.queue)-1].stat) {
			return nil
		}
	}
	newer, err := f.place.generations(f.known)
	if err != nil {
		return err
	}
	slices.Reverse(newer)
	if len(newer) > 0 && len(f.queue) == 0 {
		newer[0].first = true
	}
	f.queue = append(f.queue, newer...)
	return nil
}

func (f *follower[T]) known(st kernel.Stat) bool {
	same := func(o openFile) bool { return o.stat.SameFile(st) }
	return slices.ContainsFunc(f.queue, same) || slices.ContainsFunc(f.before, same)
}

// advance reads what is there now.
func (f *follower[T]) advance() error {
	for len(f.queue) > 0 {
		if f.current == nil {
			f.current = f.begin(f.queue[0])
		}
		f.current.growing = len(f.queue) == 1
		if err := f.current.grow(); err != nil {
			return err
		}
		if err := f.drain(f.current); err != nil || len(f.queue) == 1 {
			return err
		}
		closeAll(f.before)
		f.before, f.queue, f.current = f.queue[:1:1], f.queue[1:], nil
	}
	return nil
}

// grow takes notice of the size that the file has now. A piece of a frame that was cut off again is nothing: it has not
// been read, since it was no line yet.
func (l *lines) grow() error {
	st, err := l.file.Stat()
	if err != nil {
		return l.failed(err)
	}
	if l.skipping && st.Size < l.pos {
		l.pos, l.skipping = l.skipFrom, false
	}
	if st.Size < l.pos {
		return &fs.PathError{Op: "read", Path: l.path, Err: errTruncated}
	}
	l.end = st.Size
	return nil
}

// pause waits for a while, or until the context ends.
func (r *reader[T]) pause() error {
	timer := time.NewTimer(followEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}
