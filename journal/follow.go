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
	f := follower[T]{reader: r}
	defer func() { closeAll(f.earlier); closeAll(f.before); closeAll(f.queue) }()
	var err error
	if f.earlier, err = openPaths(paths[:last], true); err != nil {
		return err
	}
	if f.place, err = locate(paths[last]); kernel.OutOfDescriptors(err) {
		park(f.earlier)
		f.place, err = locate(paths[last])
	}
	if err != nil {
		return err
	}
	defer f.place.dir.Close()
	if err := f.look(); err != nil { // before the first record
		return err
	}
	for ; len(f.earlier) > 0; f.earlier = f.earlier[1:] {
		if err := r.file(f.earlier[0]); err != nil {
			return err
		}
		f.earlier[0].close()
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

// follower follows one journal. The newest file that is not empty grows; see ended.
type follower[T any] struct {
	*reader[T]
	place   place
	earlier []openFile // to be read first: the files that are not followed
	queue   []openFile // from the one that is being read to the newest
	waited  bool       // there was no file at the start: the first epoch too is met from its 1 on
	current *lines     // of queue[0], or nil if it has not been begun
	// before are up to two files before queue[0]. They stay open, so that no other file can get their inode numbers, and
	// are known when the scan for newer files meets them: queue[0] may have been removed, or moved elsewhere.
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
	known := func(st kernel.Stat) bool {
		same := func(o openFile) bool { return o.stat.SameFile(st) }
		i := slices.IndexFunc(f.before, same)
		if i >= 0 {
			f.forget(i + 1)
		}
		return i >= 0 || slices.ContainsFunc(f.queue, same)
	}
	newer, err := f.place.generations(known)
	if kernel.OutOfDescriptors(err) && !f.place.few {
		park(f.earlier)
		f.place.few = true
		newer, err = f.place.generations(known)
	}
	if err != nil {
		return err
	}
	slices.Reverse(newer)
	if len(f.queue) == 0 && len(newer) == 0 {
		f.waited = true
	} else if len(f.queue) == 0 {
		newer[0].first = true
	}
	f.queue = append(f.queue, newer...)
	return nil
}

// forget drops the files from the i-th on, which no longer have a number and will not get one again.
func (f *follower[T]) forget(i int) {
	closeAll(f.before[i:])
	f.before = f.before[:i]
}

// advance reads what is there now.
func (f *follower[T]) advance() error {
	for len(f.queue) > 0 {
		if f.current == nil {
			now, err := f.queue[0].opened()
			if err != nil {
				return err
			}
			f.queue[0] = now
			if f.current = f.begin(now); now.first {
				f.trail.begun = f.waited
			}
		}
		ended, err := f.ended() // before its size is taken
		if err != nil {
			return err
		}
		f.current.growing = !ended
		if err := f.current.grow(); err != nil {
			return err
		}
		if err := f.drain(f.current); err != nil || !ended {
			return err
		}
		f.before, f.queue, f.current = append(f.before, f.queue[0]), f.queue[1:], nil
		if len(f.before) > 2 {
			f.before[0].file.Close()
			f.before = slices.Delete(f.before, 0, 1)
		}
	}
	return nil
}

// ended reports whether nothing more comes to queue[0]. The writer writes to a new file only after it is done with the old
// one: a newer file that is empty proves nothing, somebody may have put it there while a write is in flight.
func (f *follower[T]) ended() (bool, error) {
	for _, newer := range f.queue[1:] {
		if newer.stat.Size > 0 {
			return true, nil
		}
		if newer.parked {
			continue
		}
		st, err := newer.file.Stat()
		if err != nil {
			return false, &fs.PathError{Op: "stat", Path: newer.path, Err: err}
		}
		if st.Size > 0 {
			return true, nil
		}
	}
	return false, nil
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
