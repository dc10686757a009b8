package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ReadOptions say how to read. The zero value reads the files as they are.
type ReadOptions[T any] struct {
	// MaxLineBytes bounds a line without its line feed, hard: a longer one is an anomaly (oversized-line). Zero is 16 MiB.
	MaxLineBytes int
	// Validate refuses an event by returning an error, if it is not nil: that is an anomaly (invalid-event), as is a
	// panic in it or in a method that decodes the event.
	Validate func(T) error
	// Generations reads each file after all the generations that it has, oldest first, and is safe beside a writer that
	// rotates them. The file itself may be missing for a moment, as long as there is a generation. A line that is being
	// written at its end is left out: what is there without a line feed is damage only if it stays so, some 50 ms.
	Generations bool
	// Follow goes on after the last file as it grows and is rotated, until the context ends. It implies Generations.
	// The last file need not exist yet; its directory must.
	Follow bool
	// Progress is told how many bytes have been read so far, after some more of them, if it is not nil.
	Progress func(bytes int64)
}

// maxLineDefault is MaxLineBytes where it is zero.
const maxLineDefault = 16 << 20

func maxLineOf(bytes int) (int, error) {
	if bytes < 0 {
		return 0, fmt.Errorf("journal: MaxLineBytes is %d, and must not be negative", bytes)
	}
	if bytes == 0 {
		return maxLineDefault, nil
	}
	return bytes, nil
}

// Record is what lies at one place of a journal: exactly one of a frame (Anomaly and Gap are nil), an anomaly, or a gap
// before the frame that follows.
type Record[T any] struct {
	File     string // as it was given, or found
	Offset   int64  // of the first byte, from 0; a gap has that of the frame that follows
	Line     int64  // from 1
	Bytes    int64  // with the line feed; of an anomaly those that are skipped, of a gap 0
	Epoch    string
	Sequence uint64
	Event    T              // if T is jsontext.Value, it lies within Raw
	Raw      jsontext.Value // the frame as it lies, without its line feed; valid until the next record
	Anomaly  *Anomaly
	Gap      *Gap
}

// Read streams what the files hold, in the order given, which is one journal's from its oldest file on. All are opened
// before the first record, without following a link in the last component or waiting for anything, and each is read up
// to the size that it had then. It holds one chunk of 64 KiB and one line in memory. Where there are more files than
// descriptors, all but the newest are closed again until their turn; one that was rotated away by then is an error.
//
// Damage is no error: it is an anomaly, and the reading goes on behind it. A last line that lacks nothing but its line
// feed is an anomaly (unterminated-line) that skips nothing, and then a frame. Frames that are missing or come again
// within an epoch are a gap. An epoch begins with 1, except that of the very first frame: what was before it may have
// been rotated away. A reading that follows, and found no file at its start, expects a 1 there too.
//
// An error ends it, as the last pair, with a zero Record: a file that is missing, forbidden, not a regular file or
// truncated while it is read (a *fs.PathError), a T into which nothing can be decoded (type P *P), or the end of the
// context (its cause; a reading that follows ends without an error if the context was merely canceled). Descriptors are
// closed however it ends.
func Read[T any](ctx context.Context, files []string, opts ReadOptions[T]) iter.Seq2[Record[T], error] {
	return func(yield func(Record[T], error) bool) {
		r := reader[T]{ctx: ctx, opts: opts, yield: yield}
		err := r.run(files)
		if err != nil && err != errStopped && !(opts.Follow && err == context.Canceled) {
			yield(Record[T]{}, err)
		}
	}
}

// errStopped: the caller wants no more.
var errStopped = errors.New("stopped")

// reader is one reading.
type reader[T any] struct {
	ctx   context.Context
	opts  ReadOptions[T]
	yield func(Record[T], error) bool

	buf   []byte
	done  int64 // bytes
	line  int64 // of the file
	trail trail
	epoch string // text of the epoch of the last frame
	plain plain
	rec   Record[T] // the one that is being made: kept here, it is no allocation for each
}

func (r *reader[T]) run(paths []string) (err error) {
	if r.opts.MaxLineBytes, err = maxLineOf(r.opts.MaxLineBytes); err != nil {
		return err
	}
	if err := decodable(reflect.TypeFor[T]()); err != nil {
		return err
	}
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if r.opts.Follow && len(paths) > 0 {
		return r.follow(paths)
	}
	files, err := openPaths(paths, r.opts.Generations)
	defer func() { closeAll(files) }()
	for err == nil && len(files) > 0 {
		err = r.file(files[0])
		files[0].close()
		files = files[1:]
	}
	return err
}

// file reads one file to its end.
func (r *reader[T]) file(f openFile) error {
	now, err := f.opened()
	if err != nil {
		return err
	}
	if f.parked {
		defer now.close()
	}
	return r.drain(r.begin(now))
}

func (r *reader[T]) begin(f openFile) *lines {
	if r.line = 0; f.first {
		r.trail = trail{}
	}
	return &lines{openFile: f, maxLine: r.opts.MaxLineBytes, end: f.stat.Size}
}

// drain reads what a file has by now.
func (r *reader[T]) drain(l *lines) error {
	for {
		b, buf, err := l.next(r.ctx, r.buf)
		r.buf = buf
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = r.piece(l.path, b)
		}
		if err == nil && r.opts.Progress != nil {
			r.done += b.oversized + int64(len(b.lines))
			r.opts.Progress(r.done)
		}
		if err != nil {
			return err
		}
	}
}

// piece makes records of a piece.
func (r *reader[T]) piece(path string, b piece) error {
	if b.oversized > 0 {
		r.line++
		return r.anomaly(path, b.offset, b.oversized, oversizedLine, b.ended, b.tail)
	}
	for rest := b.lines; len(rest) > 0; {
		line, whole, ended := rest, len(rest), false
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			line, whole, ended = rest[:i], i+1, true
		}
		rest = rest[whole:]
		r.line++
		if err := r.oneLine(path, b.offset, line, ended, b.tail && len(rest) == 0); err != nil {
			return err
		}
		b.offset += int64(whole)
	}
	return nil
}

// oneLine makes records of a line. The common case is a frame as we write it: what the line is instead is asked only if
// that fails.
func (r *reader[T]) oneLine(path string, offset int64, line []byte, ended, tail bool) error {
	r.rec = Record[T]{}
	f, why, written := frame{}, sound, false
	if len(line) <= r.opts.MaxLineBytes {
		f, written = writtenFrame(line)
	}
	if !written || !r.decode(f.event, usual) {
		if f, why = classify(line, ended, r.opts.MaxLineBytes); why == sound && !r.decode(f.event, lenient) {
			why = invalidEvent
		}
	}
	if why == sound && !r.valid() {
		why = invalidEvent
	}
	size := int64(len(line))
	if ended {
		size++
	}
	if why != sound {
		return r.anomaly(path, offset, size, why, ended, tail)
	}
	if !ended {
		if err := r.anomaly(path, offset, 0, unterminatedLine, ended, tail); err != nil {
			return err
		}
	}
	return r.frame(path, offset, size, f, line)
}

// frame yields a frame, and the gap before it.
func (r *reader[T]) frame(path string, offset, size int64, f frame, line []byte) error {
	if string(f.epoch[:]) != r.epoch {
		r.epoch = string(f.epoch[:])
	}
	if after, gap := r.trail.step(&f.epoch, f.sequence); gap {
		g := &Gap{Epoch: r.epoch, After: after, Before: f.sequence}
		if err := r.emit(Record[T]{File: path, Offset: offset, Line: r.line, Epoch: r.epoch, Gap: g}); err != nil {
			return err
		}
	}
	r.rec.File, r.rec.Offset, r.rec.Line, r.rec.Bytes = path, offset, r.line, size
	r.rec.Epoch, r.rec.Sequence, r.rec.Raw = r.epoch, f.sequence, line
	return r.emit(r.rec)
}

func (r *reader[T]) anomaly(path string, offset, skipped int64, why reason, ended, tail bool) error {
	return r.emit(Record[T]{File: path, Offset: offset, Line: r.line, Bytes: skipped, Anomaly: anomalyAt(path, offset, r.line, skipped, why, ended, tail)})
}

func (r *reader[T]) emit(rec Record[T]) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if !r.yield(rec, nil) {
		return errStopped
	}
	return nil
}

// decode makes the event of its JSON, and reports whether that is one value, and of the type. A panic in a method of the
// caller's type is a no.
func (r *reader[T]) decode(event []byte, how []jsontext.Options) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	if v, raw := any(&r.rec.Event).(*jsontext.Value); raw {
		*v = event[:len(event):len(event)] // a copy would cost a fifth of the whole
		return r.plain.isPlain(event, false) || v.IsValid(how...)
	}
	var fresh T
	r.rec.Event = fresh
	return json.Unmarshal(event, &r.rec.Event, how...) == nil
}

// valid asks the caller, for whom a panic is a no.
func (r *reader[T]) valid() (ok bool) {
	if r.opts.Validate == nil {
		return true
	}
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return r.opts.Validate(r.rec.Event) == nil
}
