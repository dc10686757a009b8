package journal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"

	"github.com/go-json-experiment/json/jsontext"
)

// Report counts what files hold.
type Report struct {
	Files        int               `json:"files"`
	Bytes        int64             `json:"bytes"`
	Frames       uint64            `json:"frames"`
	Anomalies    uint64            `json:"anomalies"`
	Reasons      map[string]uint64 `json:"reasons"` // of the anomalies; those that occurred
	SkippedBytes int64             `json:"skippedBytes"`
	Gaps         uint64            `json:"gaps"`
	Epochs       int               `json:"epochs"` // times that an epoch began, or came again after another
	First        *Anomaly          `json:"first"`
	Last         *Anomaly          `json:"last"`
}

// workersMost bounds the cores, and with them the buffers.
const workersMost = 8

// Verify reads the files as Read does, and counts. It uses up to eight cores, or one if there is a Validate; its memory is
// a chunk of 64 KiB and the longest line for each, and twice more. It does not follow: Follow means Generations. Validate runs
// in another goroutine than Verify; to end that one (runtime.Goexit, testing.T.FailNow) is an error.
func Verify(ctx context.Context, files []string, opts ReadOptions[jsontext.Value]) (Report, error) {
	if ctx.Err() != nil {
		return Report{}, context.Cause(ctx)
	}
	open, err := openPaths(files, opts.Generations || opts.Follow)
	if err != nil {
		return Report{}, err
	}
	defer closeAll(open)
	return inspectFiles(ctx, open, opts)
}

// inspectFiles reads files in their order. It closes none but those that are parked.
func inspectFiles(ctx context.Context, files []openFile, opts ReadOptions[jsontext.Value]) (report Report, err error) {
	if opts.MaxLineBytes, err = maxLineOf(opts.MaxLineBytes); err != nil {
		return Report{}, err
	}
	workers := min(runtime.GOMAXPROCS(0), workersMost)
	if opts.Validate != nil {
		workers = 1
	}
	ctx, cancel := context.WithCancel(ctx)
	v := inspection{files: files, opts: opts, work: make(chan *part, workers), order: make(chan *part, workers+2), free: make(chan []byte, workers+2)}
	for range cap(v.free) {
		v.free <- nil
	}
	for range workers {
		go v.inspect()
	}
	go v.cut(ctx)
	defer v.giveUp(cancel)
	sum := summary{Report: Report{Files: len(files), Reasons: map[string]uint64{}}}
	for p := range v.order {
		<-p.done
		if err := p.err; err != nil {
			return Report{}, err
		}
		if ctx.Err() != nil {
			return Report{}, context.Cause(ctx)
		}
		sum.add(p)
		v.free <- p.buf
		if opts.Progress != nil {
			opts.Progress(sum.Bytes)
		}
	}
	return sum.Report, nil
}

// giveUp waits until nothing uses the files, however the adding up ended.
func (v *inspection) giveUp(cancel context.CancelFunc) {
	cancel()
	for p := range v.order {
		<-p.done
		v.free <- p.buf
	}
}

// inspection is one Verify: one goroutine cuts the files into parts, some inspect them, and one adds up what they found,
// in order.
type inspection struct {
	files []openFile
	opts  ReadOptions[jsontext.Value]
	work  chan *part
	order chan *part
	free  chan []byte // bounds what is held
}

// part is a piece and what it holds.
type part struct {
	piece
	file  *openFile
	begin bool // it is the first of its file
	buf   []byte
	err   error
	done  chan struct{}

	count       int64
	frames      uint64
	reasons     [reasons]uint64
	skipped     int64
	first, last *Anomaly // with the line counted from the part on
	trail       trail    // within the part
	head        frame    // its first frame, without the event
	gaps        uint64
}

var already = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// cut makes parts of the files.
func (v *inspection) cut(ctx context.Context) {
	defer close(v.order)
	defer close(v.work)
	for i := range v.files {
		if !v.cutFile(ctx, &v.files[i]) {
			return
		}
	}
}

// cutFile reports whether it came to the end of the file.
func (v *inspection) cutFile(ctx context.Context, f *openFile) bool {
	now, err := f.opened()
	if err != nil {
		v.order <- &part{file: f, buf: <-v.free, err: err, done: already}
		return false
	}
	if f.parked {
		defer now.close()
	}
	l := lines{openFile: now, maxLine: v.opts.MaxLineBytes, end: f.stat.Size}
	for begin := true; ; begin = false {
		b, buf, err := l.next(ctx, <-v.free)
		if err == io.EOF {
			v.free <- buf
			return true
		}
		p := &part{piece: b, file: f, begin: begin, buf: buf, err: err, done: already}
		if err == nil {
			p.done = make(chan struct{})
			v.work <- p
		}
		v.order <- p
		if err != nil {
			return false
		}
	}
}

// inspect takes parts until there are no more. Whoever waits for a part learns of it, also if Validate never returns.
func (v *inspection) inspect() {
	var p *part
	defer func() {
		if p != nil {
			go v.inspect()
			p.err = errExited
			close(p.done)
		}
	}()
	for p = range v.work {
		p.inspect(&v.opts)
		close(p.done)
		p = nil
	}
}

// errExited: Validate called runtime.Goexit, as testing.T.FailNow does. Here it runs in a goroutine of its own.
var errExited = errors.New("journal: Validate ended its goroutine")

func (p *part) inspect(opts *ReadOptions[jsontext.Value]) {
	if p.oversized > 0 {
		p.count = 1
		p.anomaly(p.offset, p.oversized, oversizedLine, p.ended, p.tail)
		return
	}
	var text plain
	offset := p.offset
	for rest := p.piece.lines; len(rest) > 0; {
		line, whole, ended := rest, len(rest), false
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			line, whole, ended = rest[:i], i+1, true
		}
		rest = rest[whole:]
		p.count++
		f, ok := frame{}, false
		if len(line) <= opts.MaxLineBytes {
			f, ok = writtenFrame(line)
			ok = ok && (text.isPlain(f.event, false) || jsontext.Value(f.event).IsValid(usual...))
		}
		why := sound
		if !ok {
			f, why = classify(line, ended, opts.MaxLineBytes)
		}
		if why == sound && opts.Validate != nil && !valid(opts.Validate, f.event) {
			why = invalidEvent
		}
		tail := p.tail && len(rest) == 0
		if why != sound {
			p.anomaly(offset, int64(whole), why, ended, tail)
		} else {
			if !ended {
				p.anomaly(offset, 0, unterminatedLine, ended, tail)
			}
			p.frame(&f)
		}
		offset += int64(whole)
	}
}

// valid asks the caller, for whom a panic is a no.
func valid(validate func(jsontext.Value) error, event jsontext.Value) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return validate(event) == nil
}

func (p *part) frame(f *frame) {
	p.frames++
	if !p.trail.begun {
		p.head = frame{epoch: f.epoch, sequence: f.sequence}
	}
	if _, gap := p.trail.step(&f.epoch, f.sequence); gap {
		p.gaps++
	}
}

func (p *part) anomaly(offset, skipped int64, why reason, ended, tail bool) {
	p.reasons[why]++
	p.skipped += skipped
	if a := anomalyAt(p.file.path, offset, p.count, skipped, why, ended, tail); p.first == nil {
		p.first, p.last = a, a
	} else {
		p.last = a
	}
}
