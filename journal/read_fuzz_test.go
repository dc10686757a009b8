package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/go-json-experiment/json/jsontext"
)

// accounts checks records as they come: that they account for every byte, and what Verify must have counted.
type accounts struct {
	fail   func(string, ...any)
	file   string
	at     int64 // the end of the last record
	line   int64
	warned bool // of the frame that must come next
	jumped bool
	epoch  string
	want   Report
}

func (a *accounts) take(rec Record[jsontext.Value]) {
	if rec.File != a.file {
		a.file, a.at, a.line = rec.File, 0, 0
	}
	if rec.Offset != a.at || rec.Line != a.line+1 {
		a.fail("%s lies behind line %d, which ends at %d", told(rec), a.line, a.at)
	}
	if a.at += rec.Bytes; rec.Bytes > 0 {
		a.line++
	}
	if (a.warned || a.jumped) && rec.Anomaly != nil {
		a.fail("no frame behind a warning or a gap, but %s", told(rec))
	}
	switch {
	case rec.Anomaly != nil:
		a.want.Anomalies++
		a.want.Reasons[rec.Anomaly.Reason]++
		a.want.SkippedBytes += rec.Anomaly.SkippedBytes
		if a.want.Last = rec.Anomaly; a.want.First == nil {
			a.want.First = rec.Anomaly
		}
		a.warned = rec.Anomaly.Reason == "unterminated-line" && rec.Bytes == 0
	case rec.Gap != nil:
		a.want.Gaps++
		a.jumped = true
	default:
		a.want.Frames++
		if rec.Epoch != a.epoch {
			a.epoch = rec.Epoch
			a.want.Epochs++
		}
		if lf := int64(1); rec.Bytes != int64(len(rec.Raw))+lf && !(a.warned && rec.Bytes == int64(len(rec.Raw))) {
			a.fail("%s has %d bytes", told(rec), len(rec.Raw))
		}
		a.warned, a.jumped = false, false
	}
	a.want.Bytes += rec.Bytes
}

// accounted reads files and verifies them, and checks that both say the same and account for every byte in little memory.
func accounted(t interface {
	Helper()
	Fatalf(string, ...any)
	Errorf(string, ...any)
}, files []string, sizes int64, maxLine int) {
	t.Helper()
	opts := ReadOptions[jsontext.Value]{MaxLineBytes: maxLine}
	a := accounts{fail: t.Errorf, want: Report{Files: len(files), Reasons: map[string]uint64{}}}
	r := reader[jsontext.Value]{ctx: context.Background(), opts: opts, yield: func(rec Record[jsontext.Value], err error) bool {
		a.take(rec)
		return true
	}}
	if err := r.run(files); err != nil {
		t.Fatalf("%v", err)
	}
	if a.want.Bytes != sizes {
		t.Errorf("%d bytes are accounted for, of %d", a.want.Bytes, sizes)
	}
	if cap(r.buf) > 2*(maxLine+2*chunkBytes) {
		t.Errorf("a buffer of %d bytes for lines of %d", cap(r.buf), maxLine)
	}
	report, err := Verify(context.Background(), files, opts)
	if err != nil {
		t.Fatalf("%v", err)
	}
	got, err := json.Marshal(report)
	want, _ := json.Marshal(a.want)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("verified\n%s, %v\nread\n%s", got, err, want)
	}
}

// Whatever the bytes, the reader terminates, in bounded memory, and frames and skipped bytes account for every one; and
// so they do if they lie in two files, and wherever the chunks end that are read.
func FuzzRead(f *testing.F) {
	good := frameText(epochA, 1, `{"a":[1,"x"]}`)
	for _, d := range damages {
		for _, text := range []string{d.line, d.line + "\n", d.line + "\n" + good, good + d.line, good + d.line + "\r\n" + good} {
			f.Add([]byte(text), uint16(len(text)/2), uint32(0), uint16(200))
		}
	}
	for _, c := range classified {
		if len(c.line) < 1000 {
			f.Add([]byte(c.line+"\n"+good), uint16(0), uint32(chunkBytes-60), uint16(300))
		}
	}
	f.Add([]byte(good+strings.TrimSuffix(frameText(epochB, 2, "0"), "\n")), uint16(len(good)), uint32(3), uint16(1000))
	f.Add([]byte("\n\r\n \n\ufeff"+good+"\x00\n"), uint16(3), uint32(chunkBytes-100), uint16(1))
	f.Fuzz(func(t *testing.T, data []byte, cut uint16, pad uint32, maxLine uint16) {
		first, second := data[:min(int(cut), len(data))], data[min(int(cut), len(data)):]
		before := ""
		if pad %= 2 * chunkBytes; pad > 0 {
			before = frameText(epochB, 1, `"`+strings.Repeat("p", int(pad))+`"`)
		}
		dir := t.TempDir()
		files := []string{inFile(t, filepath.Join(dir, "j.1"), before+string(first)), inFile(t, filepath.Join(dir, "j"), string(second))}
		accounted(t, files, int64(len(before)+len(data)), 1+int(maxLine))
		for line := range strings.SplitSeq(string(data), "\n") {
			sameBothWays(t, []byte(line))
		}
	})
}

// Files made of lines of which each is known, longer and shorter than chunks, are read as they were made.
func TestReadWhatWasMade(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		const most = 100_000
		var content, want strings.Builder
		last := rapid.IntRange(1, 12).Draw(t, "lines")
		sequence := uint64(0)
		for line := 1; line <= last; line++ {
			at, size := content.Len(), rapid.SampledFrom([]int{0, 1, 100, chunkBytes - 100, chunkBytes, most - 91 - 2, most - 90 - 1, most, 2*chunkBytes + 7, 3 * chunkBytes}).Draw(t, "size")
			ended := line < last || rapid.Bool().Draw(t, "ended")
			text := `"` + strings.Repeat("y", size) + `"`
			reason := ""
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				reason, text = "invalid-json", "["+text
			case 1:
				reason, text = "nul-byte", text+"\x00"
			default:
				sequence++
				text = strings.TrimSuffix(frameText(epochA, sequence, text), "\n")
			}
			skipped := len(text)
			if len(text) > most {
				if reason == "" {
					sequence--
				}
				reason = "oversized-line"
			}
			position := "interior"
			if line == last {
				position = "tail"
			}
			if content.WriteString(text); ended {
				content.WriteString("\n")
				skipped++
			}
			if reason == "invalid-json" && !ended {
				reason = "unterminated-line"
			}
			if reason == "" && !ended {
				fmt.Fprintf(&want, "j %d %d unterminated-line tail 0\n", line, at)
			}
			if reason == "" {
				fmt.Fprintf(&want, "j %d %d %d %d\n", line, at, sequence, skipped)
			} else {
				fmt.Fprintf(&want, "j %d %d %s %s %d\n", line, at, reason, position, skipped)
			}
		}
		path := filepath.Join(dir, "j")
		for _, name := range []string{path, path + ".1"} {
			if err := os.WriteFile(name, []byte(content.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var got strings.Builder
		for rec, err := range Read(context.Background(), []string{path}, ReadOptions[jsontext.Value]{MaxLineBytes: most}) {
			if err != nil || rec.Gap != nil {
				t.Fatalf("%s, %v", told(rec), err)
			}
			if a := rec.Anomaly; a != nil {
				fmt.Fprintf(&got, "j %d %d %s %s %d\n", a.Line, a.Offset, a.Reason, a.Position, a.SkippedBytes)
			} else {
				fmt.Fprintf(&got, "j %d %d %d %d\n", rec.Line, rec.Offset, rec.Sequence, rec.Bytes)
			}
		}
		if got.String() != want.String() {
			t.Fatalf("read\n%s\nwant\n%s", got.String(), want.String())
		}
		accounted(t, []string{path + ".1", path}, 2*int64(content.Len()), most)
	})
}
