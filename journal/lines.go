package journal

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/heirlock/heirlock/internal/kernel"
)

// chunkBytes is how much is read at once.
const chunkBytes = 64 << 10

// openFile is a file that is open for reading.
type openFile struct {
	path string // as it was given, or found
	file kernel.File
	stat kernel.Stat // at open; it is read up to the size in it
	// first: another journal begins with this file, its oldest. What was before it, was rotated away: sequences begin
	// where they begin.
	first bool
	// live: it is the newest of a journal, and somebody may be writing its last line.
	live bool

	journal string // the path of the journal that it was found in
	number  int64  // where it was found; 0 is the active file, or one that was given
	parked  bool   // it is not open; see opened
}

func closeAll(files []openFile) {
	for i := range files {
		files[i].close()
	}
}

var errTruncated = errors.New("it was truncated while it was read")

// lines cuts a file into pieces of whole lines. It holds nothing but the buffer that it is given: one chunk and the
// longest line, and of a line that is longer than maxLine only one chunk.
type lines struct {
	openFile
	maxLine int
	end     int64  // where the file ends for us
	pos     int64  // of the next read
	rest    []byte // what was read behind the last piece, without a line feed; in its buffer
	// growing: the file may get longer. A line that has no line feed yet stays pending, and is read again.
	growing  bool
	skipping bool // within a line that is too long
	skipFrom int64
}

// piece is some whole lines, or one that is too long to be held.
type piece struct {
	offset    int64
	lines     []byte // with their line feeds, which only the last line of a file may lack
	oversized int64  // bytes of one line that is too long, and then lines is empty
	ended     bool   // its last line is terminated
	tail      bool   // its last line is the last of the file
}

// next reads the next piece into buf, which it may replace, and returns it in both cases; piece.lines points into it.
// io.EOF: there is no more, or not yet.
func (l *lines) next(ctx context.Context, buf []byte) (piece, []byte, error) {
	buf = append(buf[:0], l.rest...)
	l.rest = nil
	for l.pos < l.end {
		if ctx.Err() != nil {
			return piece{}, buf, context.Cause(ctx)
		}
		have, n := len(buf), int(min(chunkBytes, l.end-l.pos))
		buf = slices.Grow(buf, n)[:have+n]
		if _, err := l.file.ReadAt(buf[have:], l.pos); err != nil {
			return piece{}, buf, l.failed(err)
		}
		l.pos += int64(n)
		if l.skipping {
			if i := bytes.IndexByte(buf, '\n'); i >= 0 {
				l.pos += int64(i+1) - int64(n) // what follows is read again: there is one such line in many chunks
				return l.oversized(true), buf, nil
			}
			buf = buf[:0]
		} else if i := bytes.LastIndexByte(buf[have:], '\n'); i >= 0 {
			l.rest = buf[have+i+1:]
			whole := buf[:have+i+1]
			return piece{offset: l.pos - int64(len(buf)), lines: whole, ended: true, tail: l.pos == l.end && len(l.rest) == 0}, buf, nil
		} else if len(buf) > l.maxLine {
			l.skipping, l.skipFrom = true, l.pos-int64(len(buf))
			buf = buf[:0]
		}
	}
	return l.last(ctx, buf)
}

// last is what lies behind the last line feed.
func (l *lines) last(ctx context.Context, buf []byte) (piece, []byte, error) {
	from := l.pos - int64(len(buf))
	if l.skipping {
		from = l.skipFrom
	}
	switch {
	case l.growing:
		l.pos -= int64(len(buf))
		return piece{}, buf, io.EOF
	case from == l.pos:
		_, err := l.size(from)
		return piece{}, buf, cmp.Or(err, io.EOF)
	case l.live:
		if inFlight, err := l.inFlight(ctx, from); err != nil || inFlight {
			return piece{}, buf, cmp.Or(err, io.EOF)
		}
	}
	if l.skipping {
		return l.oversized(false), buf, nil
	}
	return piece{offset: from, lines: buf, tail: true}, buf, nil
}

// size is the size that the file has now, which must not be less than so much.
func (l *lines) size(least int64) (int64, error) {
	st, err := l.file.Stat()
	if err == nil && st.Size < least {
		err = io.EOF
	}
	if err != nil {
		return 0, l.failed(err)
	}
	return st.Size, nil
}

// An unfinished line of a live file is looked at so often again, and so long after each other: a write that is on its way
// takes microseconds.
const (
	looksAgain     = 5
	looksAgainWait = 10 * time.Millisecond
)

// inFlight reports whether somebody is writing the unfinished line that begins at an offset, or has cut it off by now. What
// stays as it is, nobody is writing.
func (l *lines) inFlight(ctx context.Context, from int64) (bool, error) {
	for n := 0; ; n++ {
		size, err := l.size(from)
		if err != nil || size != l.end || n == looksAgain {
			return err == nil && size != l.end, err
		}
		select {
		case <-time.After(looksAgainWait):
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// oversized ends a line that is too long.
func (l *lines) oversized(ended bool) piece {
	l.skipping = false
	return piece{offset: l.skipFrom, oversized: l.pos - l.skipFrom, ended: ended, tail: l.pos == l.end}
}

func (l *lines) failed(err error) error {
	if err == io.EOF {
		err = errTruncated
	}
	return &fs.PathError{Op: "read", Path: l.path, Err: err}
}
