package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// A file is read up to the size that it had when it was opened, and what its name leads to later does not matter.
func TestGrowsOrIsReplacedWhileRead(t *testing.T) {
	dir := t.TempDir()
	change := func(name string, do func(path string) error) {
		t.Run(name, func(t *testing.T) {
			path := inFile(t, filepath.Join(dir, "j"), frameText(epochA, 1, "0")+frameText(epochA, 2, "0"))
			sequence := uint64(0)
			for rec, err := range Read(t.Context(), []string{path}, ReadOptions[jsontext.Value]{}) {
				if err != nil || rec.Sequence != sequence+1 {
					t.Fatal(told(rec), err)
				}
				if sequence++; sequence == 1 {
					if err := do(path); err != nil {
						t.Fatal(err)
					}
				}
			}
			if sequence != 2 {
				t.Errorf("%d frames", sequence)
			}
		})
	}
	change("grows", func(path string) error {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString(frameText(epochA, 3, "0") + "torn")
		}
		return errors.Join(err, f.Close())
	})
	change("replaced", func(path string) error {
		return errors.Join(os.WriteFile(path+".new", []byte("no JSON"), 0o600), os.Rename(path+".new", path))
	})
	change("removed", os.Remove)
}

// A file that loses what was there when it was opened is an error, also if all of it had been read.
func TestTruncatedWhileRead(t *testing.T) {
	for name, c := range map[string]struct {
		frames int
		size   int64
	}{"in what was read": {3, 100}, "to nothing": {3, 0}, "in what was not": {30000, 2_000_000}} {
		t.Run(name, func(t *testing.T) {
			var content strings.Builder
			for i := range c.frames {
				content.WriteString(frameText(epochA, uint64(i+1), "0"))
			}
			path := inFile(t, filepath.Join(t.TempDir(), "j"), content.String())
			var last error
			n := 0
			for rec, err := range Read(t.Context(), []string{path}, ReadOptions[jsontext.Value]{}) {
				if last = err; err != nil {
					continue
				}
				if n++; rec.Sequence != uint64(n) {
					t.Fatal(told(rec))
				}
				if n == 1 {
					if err := os.Truncate(path, c.size); err != nil {
						t.Fatal(err)
					}
				}
			}
			var named *fs.PathError
			if !errors.Is(last, errTruncated) || !errors.As(last, &named) || named.Path != path || named.Op != "read" {
				t.Errorf("after %d frames: %v", n, last)
			}
		})
	}
}

// The same while it is verified: when the first chunk has been counted, only as many more have been read as there are
// buffers.
func TestTruncatedWhileVerified(t *testing.T) {
	frame := frameText(epochA, 1, "0")
	path := inFile(t, filepath.Join(t.TempDir(), "j"), strings.Repeat(frame, (runtime.GOMAXPROCS(0)+8)*chunkBytes/len(frame)))
	truncated := false
	report, err := Verify(t.Context(), []string{path}, ReadOptions[jsontext.Value]{Progress: func(bytes int64) {
		if !truncated {
			truncated = true
			if err := os.Truncate(path, bytes); err != nil {
				t.Error(err)
			}
		}
	}})
	if !errors.Is(err, errTruncated) || report.Files != 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

// inUse runs do and returns by how much it raised the memory that the process has in use, at most.
func inUse(do func(look func())) uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, most := m.HeapAlloc, uint64(0)
	do(func() {
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapAlloc)
	})
	return max(most, before) - before
}

// A line of a gibibyte (of NULs, which the disk does not hold) costs no more memory than one chunk.
func TestLineOfAGibibyte(t *testing.T) {
	path := inFile(t, filepath.Join(t.TempDir(), "j"), frameText(epochA, 1, "0"))
	const size = 1 << 30
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	start := int64(len(frameText(epochA, 1, "0")))
	if _, err := f.WriteAt([]byte("\n"+frameText(epochA, 2, "0")), start+size); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	opts := ReadOptions[jsontext.Value]{MaxLineBytes: 1 << 20}
	var got []string
	var report Report
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	used := inUse(func(look func()) {
		for rec, err := range Read(t.Context(), []string{path}, opts) {
			if err != nil {
				t.Error(err)
			}
			got = append(got, told(rec))
			look()
		}
		opts.Progress = func(int64) { look() }
		report, err = Verify(t.Context(), []string{path}, opts)
	})
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	expect(t, got,
		fmt.Sprintf("j 1 0: frame 0b7c8f5e 1 0 bytes=%d", start),
		fmt.Sprintf("j 2 %d: oversized-line interior terminated=true skipped=%d", start, size+1),
		fmt.Sprintf("j 3 %d: frame 0b7c8f5e 2 0 bytes=%d", start+size+1, start),
	)
	if err != nil || report.Frames != 2 || report.Reasons["oversized-line"] != 1 || report.SkippedBytes != size+1 || *report.First != *report.Last {
		t.Errorf("verified %+v, %v", report, err)
	}
	// All that was ever allocated, not only what was in use at some moment: a buffer of 1 MiB grows twice, and Verify has one for each core and two.
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > uint64(16<<20*(runtime.GOMAXPROCS(0)+3)) || used > 32<<20 {
		t.Errorf("%d bytes were in use, %d allocated", used, allocated)
	}
}

// Memory does not depend on the size of a file, nor on how many epochs it has: what is alive in the midst of reading and
// verifying 10 MB is less than a tenth of that.
func TestMemoryIsConstant(t *testing.T) {
	const frames = 60_000
	var content strings.Builder
	for i := range frames {
		content.WriteString(frameText(fmt.Sprintf("%08x%s", i, epochA[8:]), 1, `"`+strings.Repeat("x", 80)+`"`))
	}
	path := inFile(t, filepath.Join(t.TempDir(), "j"), content.String())
	size := content.Len()
	content.Reset()
	var m runtime.MemStats
	alive := func() uint64 {
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, most, n := alive(), uint64(0), 0
	for rec, err := range Read(t.Context(), []string{path}, ReadOptions[jsontext.Value]{}) {
		if err != nil || rec.Anomaly != nil || rec.Gap != nil {
			t.Fatal(told(rec), err)
		}
		if n++; n%20_000 == 10_000 {
			most = max(most, alive())
		}
	}
	chunks := 0
	report, err := Verify(t.Context(), []string{path}, ReadOptions[jsontext.Value]{Progress: func(int64) {
		if chunks++; chunks%50 == 25 {
			most = max(most, alive())
		}
	}})
	if n != frames || err != nil || report.Frames != frames || report.Epochs != frames || chunks < size/chunkBytes {
		t.Errorf("%d frames, %d chunks, %+v, %v", n, chunks, report, err)
	}
	if most > before+uint64(size/10) {
		t.Errorf("%d bytes alive before, %d while %d were read", before, most, size)
	}
}

// Lines around the bound, which counts them without their line feed, and around the size of a chunk.
func TestLongestLine(t *testing.T) {
	for _, most := range []int{200, chunkBytes - 1, chunkBytes, chunkBytes + 1, 3 * chunkBytes} {
		for more := -1; more <= 2; more++ {
			for _, ended := range []bool{true, false} {
				first := frameText(epochA, 1, "0")
				line := frameText(epochA, 2, `"`+strings.Repeat("x", most+more-frameBytes(2, 2)+1)+`"`)
				if !ended {
					line = strings.TrimSuffix(line, "\n")
				}
				path := inFile(t, filepath.Join(t.TempDir(), "j"), first+line)
				var got []string
				for rec, err := range Read(t.Context(), []string{path}, ReadOptions[jsontext.Value]{MaxLineBytes: most}) {
					if err != nil {
						t.Fatal(err)
					}
					switch {
					case rec.Anomaly != nil:
						got = append(got, fmt.Sprint(rec.Anomaly.Reason, rec.Anomaly.SkippedBytes, rec.Anomaly.Offset, rec.Anomaly.Line))
					default:
						got = append(got, fmt.Sprint(rec.Sequence, " ", rec.Bytes))
					}
				}
				want := []string{fmt.Sprint("1 ", len(first))}
				if more > 0 {
					want = append(want, fmt.Sprint("oversized-line", len(line), len(first), 2))
				} else if !ended {
					want = append(want, fmt.Sprint("unterminated-line", 0, len(first), 2))
				}
				if more <= 0 {
					want = append(want, fmt.Sprint("2 ", len(line)))
				}
				expect(t, got, want...)
			}
		}
	}
}

// The end of the context ends a reading before the next record, with its cause, also within a long line.
func TestReadEndsWithItsContext(t *testing.T) {
	path := inFile(t, filepath.Join(t.TempDir(), "j"), strings.Repeat(frameText(epochA, 1, "0"), 3)+strings.Repeat(" ", 1<<20))
	cause := errors.New("enough")
	for _, at := range []int{0, 1, 2} {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		n := 0
		if at == 0 {
			cancel(cause)
		}
		var last error
		for _, err := range Read(ctx, []string{path}, ReadOptions[jsontext.Value]{MaxLineBytes: 100}) {
			if last = err; err == nil {
				n++
			}
			if n == at {
				cancel(cause)
			}
		}
		if n != at || last != cause {
			t.Errorf("cancelled at %d: %d records, %v", at, n, last)
		}
		if _, err := Verify(ctx, []string{path}, ReadOptions[jsontext.Value]{}); err != cause {
			t.Errorf("verified with a context that has ended: %v", err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	_, err := Verify(ctx, []string{path, path}, ReadOptions[jsontext.Value]{Progress: func(int64) { cancel(cause) }})
	if err != cause {
		t.Errorf("verified with a context that ends: %v", err)
	}
}

// countdown is a context that ends when it has been asked so many times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// Within a long line the context is asked for each chunk.
func TestReadEndsWithinALine(t *testing.T) {
	path := inFile(t, filepath.Join(t.TempDir(), "j"), strings.Repeat(" ", 20*chunkBytes))
	for _, maxLine := range []int{100, 100 * chunkBytes} {
		var last error
		for rec, err := range Read(&countdown{t.Context(), 15}, []string{path}, ReadOptions[jsontext.Value]{MaxLineBytes: maxLine}) {
			if last = err; err == nil {
				t.Errorf("read %s", told(rec))
			}
		}
		if last == nil {
			t.Error("read to the end")
		}
	}
}
