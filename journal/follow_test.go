package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/heirlock/heirlock/internal/kernel"
)

// rotor is a journal that is rotated as the writer does it, with one frame in each file.
type rotor struct {
	t    *testing.T
	path string
	most int // files
	head uint64
}

func newRotor(t *testing.T, files, most int) *rotor {
	r := &rotor{t: t, path: filepath.Join(t.TempDir(), "j"), most: most}
	for range files {
		r.rotate()
	}
	return r
}

func (r *rotor) name(n int) string { return generationName(r.path, int64(n)) }

// rotate removes the oldest file, shifts the names and makes a new file with the next frame.
func (r *rotor) rotate() {
	r.head++
	r.shift()
	inFile(r.t, r.path+".new", frameText(epochA, r.head, "0"))
	r.must(os.Rename(r.path+".new", r.path))
}

func (r *rotor) shift() {
	free := 0
	for exists(r.name(free)) {
		free++
	}
	if free == r.most {
		free--
		r.must(os.Remove(r.name(free)))
	}
	for n := free; n > 0; n-- {
		r.must(os.Rename(r.name(n-1), r.name(n)))
	}
}

func (r *rotor) must(err error) {
	if err != nil {
		r.t.Error(err)
		panic(err)
	}
}

func exists(name string) bool { _, err := os.Lstat(name); return err == nil }

// whole checks that what was read is in order, without a gap, and holds every sequence from oldest to newest.
func whole(t *testing.T, sequences []uint64, oldest, newest uint64) {
	t.Helper()
	if len(sequences) == 0 || sequences[0] > oldest || sequences[len(sequences)-1] < newest {
		t.Fatalf("read %d, want %d…%d", sequences, oldest, newest)
	}
	for i := range sequences[1:] {
		if sequences[i+1] != sequences[i]+1 {
			t.Fatalf("read %d: not in order, once", sequences)
		}
	}
}

// A scan is interrupted at each of its steps by every number of rotations:
//
//	reader   open j, j.1, …               j.n, …
//	writer                  k rotations
func TestScanBesideRotations(t *testing.T) {
	for _, most := range []int{5, 100} {
		for step := range 6 {
			for rotations := range 8 {
				r := newRotor(t, 5, most)
				before := r.head
				p, err := locate(r.path)
				if err != nil {
					t.Fatal(err)
				}
				steps := 0
				files, err := p.generations(func(kernel.Stat) bool {
					if steps++; steps == step+1 {
						for range rotations {
							r.rotate()
						}
					}
					return false
				})
				p.dir.Close()
				if err != nil {
					t.Fatal(err)
				}
				slices.Reverse(files)
				var sequences []uint64
				for _, f := range files {
					text := make([]byte, f.stat.Size)
					if _, err := f.file.ReadAt(text, 0); err != nil {
						t.Fatal(err)
					}
					got, _ := writtenFrame(text[:len(text)-1])
					sequences = append(sequences, got.sequence)
				}
				closeAll(files)
				oldest := uint64(1)
				if most == 5 {
					oldest = max(1, r.head-4)
				}
				whole(t, sequences, oldest, before)
			}
		}
	}
}

// A rotation that is halfway leaves a hole in the numbers, also where the active file was.
func TestReadWithHoles(t *testing.T) {
	for hole := range 6 {
		r := newRotor(t, 5, 100)
		for n := 5; n > hole; n-- {
			r.must(os.Rename(r.name(n-1), r.name(n)))
		}
		var sequences []uint64
		for rec, err := range Read(t.Context(), []string{r.path}, ReadOptions[jsontext.Value]{Generations: true}) {
			if err != nil {
				t.Fatal(err)
			}
			sequences = append(sequences, rec.Sequence)
		}
		whole(t, sequences, 1, 5)
	}
}

// While the names go up as fast as they can, every reading has every frame once, in order.
func TestReadBesideRotation(t *testing.T) {
	r := newRotor(t, 6, 8)
	stop, stopped, heads := make(chan struct{}), make(chan struct{}), make(chan uint64)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case heads <- r.head:
			default:
				r.rotate()
			}
		}
	}()
	for range 50 {
		before := <-heads
		var sequences []uint64
		for rec, err := range Read(t.Context(), []string{r.path}, ReadOptions[jsontext.Value]{Generations: true}) {
			if err != nil || rec.Anomaly != nil || rec.Gap != nil {
				t.Fatal(told(rec), err)
			}
			sequences = append(sequences, rec.Sequence)
		}
		whole(t, sequences, max(1, <-heads-7), before)
	}
	close(stop)
	<-stopped
}

// following is a following that goes on when it is told.
type following struct {
	t *testing.T
	*rotor
	follower[jsontext.Value]
	records []string
}

func follow(t *testing.T, r *rotor) *following {
	f := &following{t: t, rotor: r}
	f.reader = &reader[jsontext.Value]{ctx: t.Context(), opts: ReadOptions[jsontext.Value]{MaxLineBytes: 1000}}
	f.yield = func(rec Record[jsontext.Value], err error) bool {
		if f.records = append(f.records, told(rec)); err != nil {
			t.Error(err)
		}
		return true
	}
	var err error
	if f.place, err = locate(r.path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll(f.before); closeAll(f.queue); f.place.dir.Close() })
	return f
}

// round looks once, and expects these records.
func (f *following) round(want ...string) {
	f.t.Helper()
	if err := f.look(); err != nil {
		f.t.Fatal(err)
	}
	if err := f.advance(); err != nil {
		f.t.Fatal(err)
	}
	expect(f.t, f.records, want...)
	f.records = nil
}

func (f *following) append(text string) {
	f.t.Helper()
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = file.WriteString(text)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func frameTold(file string, line, offset int, sequence uint64) string {
	return fmt.Sprintf("%s %d %d: frame 0b7c8f5e %d 0 bytes=%d", file, line, offset, sequence, frameBytes(sequence, 1))
}

func TestFollowRotations(t *testing.T) {
	f := follow(t, newRotor(t, 0, 4))
	f.round() // there is no file yet
	f.rotate()
	f.round(frameTold("j", 1, 0, 1))
	f.round()
	f.rotate()
	f.rotate()
	f.round(frameTold("j.1", 1, 0, 2), frameTold("j", 1, 0, 3))
	size := frameBytes(1, 1)
	f.append(frameText(epochA, 4, "0"))
	f.head++
	f.rotate() // the last frame of the old file has not been seen before the rotation
	f.round(frameTold("j", 2, size, 4), frameTold("j", 1, 0, 5))
	f.shift() // halfway: there is no active file
	f.round()
	f.head++
	inFile(t, f.path, frameText(epochA, f.head, "0"))
	f.round(frameTold("j", 1, 0, 6))
	for range 6 { // more files than there are: some are lost, and that is said
		f.rotate()
	}
	f.round("j.3 1 0: gap 0b7c8f5e 6→9", frameTold("j.3", 1, 0, 9), frameTold("j.2", 1, 0, 10), frameTold("j.1", 1, 0, 11), frameTold("j", 1, 0, 12))
	if len(f.before) != 2 || len(f.queue) != 1 {
		t.Errorf("%d+%d files are open, want 2+1", len(f.before), len(f.queue))
	}
}

// Where there was no file at the start, the first epoch is met from its beginning: what the writer rotated away before
// the first look is a gap. Where there was one, if empty, what was before it is not known.
func TestFollowFromNothing(t *testing.T) {
	f := follow(t, newRotor(t, 0, 2))
	f.round()
	f.round()
	for range 40 {
		f.rotate()
	}
	f.round("j.1 1 0: gap 0b7c8f5e 0→39", frameTold("j.1", 1, 0, 39), frameTold("j", 1, 0, 40))

	f = follow(t, newRotor(t, 0, 2))
	inFile(t, f.path, "")
	f.round()
	f.append(frameText(epochA, 39, "0"))
	f.round(frameTold("j", 1, 0, 39))
	inFile(t, f.path+".new", frameText(epochB, 5, "0")) // a later epoch, met in its middle
	f.shift()
	f.must(os.Rename(f.path+".new", f.path))
	f.round("j 1 0: gap 7d3e1c9a 0→5", fmt.Sprintf("j 1 0: frame 7d3e1c9a 5 0 bytes=%d", frameBytes(5, 1)))
}

// A line is a line when it has its line feed, or when nothing can follow it any more.
func TestFollowUnfinishedLines(t *testing.T) {
	f := follow(t, newRotor(t, 1, 4))
	size := frameBytes(1, 1)
	f.round(frameTold("j", 1, 0, 1))
	second := frameText(epochA, 2, "0")
	f.append(second[:10])
	f.round()
	f.append(second[10 : size-1])
	f.round()
	f.append("\n")
	f.round(frameTold("j", 2, size, 2))

	f.append(second[:10])
	f.round()
	f.must(os.Truncate(f.path, int64(2*size))) // the writer cut a torn frame off
	f.append(frameText(epochA, 3, "0"))
	f.round(frameTold("j", 3, 2*size, 3))

	f.append(strings.Repeat("x", 70_000)) // too long to be held, not finished yet
	f.round()
	f.append(strings.Repeat("x", 70_000))
	f.round()
	f.append("\n" + frameText(epochA, 4, "0"))
	f.round(fmt.Sprintf("j 4 %d: oversized-line interior terminated=true skipped=140001", 3*size), frameTold("j", 5, 3*size+140_001, 4))

	f.append(strings.Repeat("x", 70_000))
	f.round()
	f.must(os.Truncate(f.path, int64(4*size+140_001))) // and this one too
	f.append(frameText(epochA, 5, "0"))
	f.round(frameTold("j", 6, 4*size+140_001, 5))

	f.append("torn")
	f.round()
	f.head = 5
	f.rotate()
	f.round(fmt.Sprintf("j 7 %d: unterminated-line tail terminated=false skipped=4", 5*size+140_001), frameTold("j", 1, 0, 6))
}

// The active file is replaced by somebody: what was read before is not read again.
func TestFollowDisplacedFile(t *testing.T) {
	f := follow(t, newRotor(t, 3, 9))
	f.round(frameTold("j.2", 1, 0, 1), frameTold("j.1", 1, 0, 2), frameTold("j", 1, 0, 3))
	f.must(os.Remove(f.path))
	f.round()
	inFile(t, f.path, frameText(epochA, 4, "0"))
	f.round(frameTold("j", 1, 0, 4))
	f.head = 4
	f.must(os.Rename(f.path, f.path+".old"))
	f.rotate()
	f.rotate()
	f.round(frameTold("j.1", 1, 0, 5), frameTold("j", 1, 0, 6))
	for f.head = 7; f.head < 12; f.head++ {
		f.must(os.Remove(f.path))
		inFile(t, f.path, frameText(epochA, f.head, "0"))
		f.round(frameTold("j", 1, 0, f.head))
	}
	if len(f.before) != 2 || len(f.queue) != 1 {
		t.Errorf("%d+%d files are open, want 2+1", len(f.before), len(f.queue))
	}
}

// The active file is moved away and made anew while a write to the old one is in flight: what lands there is read, before
// what is written to the new one.
//
//	writer    write(j, 2) …                               … done   write(j, 4)
//	somebody                mv j j.1; : > j; again, even
//	reader                                   looks                              looks
func TestFollowWriteInFlight(t *testing.T) {
	for moves := 1; moves <= 2; moves++ {
		f := follow(t, newRotor(t, 1, 4))
		size := frameBytes(1, 1)
		f.round(frameTold("j", 1, 0, 1))
		old, err := os.OpenFile(f.path, os.O_APPEND|os.O_WRONLY, 0)
		f.must(err)
		for range moves {
			f.shift()
			inFile(t, f.path, "")
			f.round()
		}
		second := frameText(epochA, 2, "0")
		for i, text := range []string{second[:10], second[10:] + frameText(epochA, 3, "0")} {
			if _, err := old.WriteString(text); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				f.round()
			}
		}
		f.must(old.Close())
		f.round(frameTold("j", 2, size, 2), frameTold("j", 3, 2*size, 3))
		f.append(frameText(epochA, 4, "0"))
		f.round(frameTold("j", 1, 0, 4))
		if len(f.queue) != 1 {
			t.Errorf("%d files are queued, want 1", len(f.queue))
		}
	}
}

// Frames that were read and are no longer there are an error.
func TestFollowTruncatedFile(t *testing.T) {
	f := follow(t, newRotor(t, 1, 4))
	f.round(frameTold("j", 1, 0, 1))
	f.must(os.Truncate(f.path, 5))
	var named *fs.PathError
	if err := errors.Join(f.look(), f.advance()); !errors.Is(err, errTruncated) || !errors.As(err, &named) || named.Path != f.path {
		t.Errorf("truncated: %v", err)
	}
}

// A reading that follows goes on until its context ends; a mere cancel is no error.
func TestFollowUntilCancelled(t *testing.T) {
	cause := errors.New("enough")
	for name, c := range map[string]struct {
		end  func(context.CancelCauseFunc)
		want error
	}{
		"canceled":           {func(cancel context.CancelCauseFunc) { cancel(nil) }, nil},
		"canceled by reason": {func(cancel context.CancelCauseFunc) { cancel(cause) }, cause},
		"timed out":          {func(cancel context.CancelCauseFunc) { cancel(context.DeadlineExceeded) }, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRotor(t, 0, 3)
			r.head = 40 // what was before was rotated away
			r.rotate()
			r.rotate()
			other := inFile(t, filepath.Join(t.TempDir(), "other"), frameText(epochB, 9, "0"))
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			before := descriptors(t)
			records, done := make(chan string), make(chan error)
			go func() {
				var last error
				for rec, err := range Read(ctx, []string{other, r.path}, ReadOptions[jsontext.Value]{Follow: true}) {
					if last = err; err == nil {
						records <- told(rec)
					}
				}
				done <- last
			}()
			got := []string{<-records, <-records, <-records}
			r.rotate()
			got = append(got, <-records)
			r.rotate()
			got = append(got, <-records)
			expect(t, got, "other 1 0: frame 7d3e1c9a 9 0 bytes=90", frameTold("j.1", 1, 0, 41), frameTold("j", 1, 0, 42), frameTold("j", 1, 0, 43), frameTold("j", 1, 0, 44))
			c.end(cancel)
			if err := <-done; err != c.want {
				t.Errorf("ended with %v, want %v", err, c.want)
			}
			if after := descriptors(t); !slices.Equal(after, before) {
				t.Errorf("open before: %q, after: %q", before, after)
			}
		})
	}
}

// To follow a file in no directory, or something that is no file, is an error.
func TestFollowNothing(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for path, want := range map[string]string{filepath.Join(dir, "none/j"): "no such file", dir: "directory"} {
		n := 0
		for _, err := range Read(ctx, []string{path}, ReadOptions[jsontext.Value]{Follow: true}) {
			if n++; err == nil || !strings.Contains(err.Error(), want) || n > 1 {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}
