package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	epochA = "0b7c8f5e-3a51-4d0e-9c11-5f2f6a0c1e01"
	epochB = "7d3e1c9a-52b4-4f6e-8b7d-0a9c8e6f4b02"
)

// frameText is a frame as it is written, with its line feed.
func frameText(epoch string, sequence uint64, event string) string {
	return string(appendFrameHead(nil, epoch, sequence)) + event + frameEnd
}

// inFile writes a file and returns its path.
func inFile(t testing.TB, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// told is a record in one line of text, so that lists of them can be compared.
func told(rec Record[jsontext.Value]) string {
	at := fmt.Sprintf("%s %d %d", filepath.Base(rec.File), rec.Line, rec.Offset)
	switch {
	case rec.Anomaly != nil:
		a := rec.Anomaly
		if a.File != rec.File || a.Offset != rec.Offset || a.Line != rec.Line || a.SkippedBytes != rec.Bytes || rec.Gap != nil {
			return fmt.Sprintf("%s: the anomaly %+v is elsewhere than its record %+v", at, *a, rec)
		}
		return fmt.Sprintf("%s: %s %s terminated=%v skipped=%d", at, a.Reason, a.Position, a.Terminated, a.SkippedBytes)
	case rec.Gap != nil:
		return fmt.Sprintf("%s: gap %.8s %d→%d", at, rec.Gap.Epoch, rec.Gap.After, rec.Gap.Before)
	}
	return fmt.Sprintf("%s: frame %.8s %d %s bytes=%d", at, rec.Epoch, rec.Sequence, rec.Event, rec.Bytes)
}

// reading reads to the end, and returns what was told and the error at the end.
func reading(t testing.TB, files []string, opts ReadOptions[jsontext.Value]) (records []string, err error) {
	t.Helper()
	for rec, e := range Read(context.Background(), files, opts) {
		if err != nil {
			t.Fatalf("a pair behind the error %v: %v, %v", err, told(rec), e)
		}
		if e != nil {
			err = e
			continue
		}
		records = append(records, told(rec))
	}
	return records, err
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("read\n%s\nwant\n%s", g, w)
	}
}

// damages are lines that are no frame, without their line feed, and the reason that they have.
var damages = []struct{ reason, line string }{
	{"oversized-line", `{"schemaVersion":1,"epoch":"` + strings.Repeat("x", 300) + "\x00\xff"},
	{"nul-byte", "{\"schemaVersion\x00\xff"},
	{"invalid-utf8", "{\"schemaVersion\xe2\x82"},
	{"invalid-json", `{"schemaVersion":1,"epoch":"`},
	{"invalid-frame", `{"schemaVersion":1,"epoch":"` + epochA + `","sequence":0,"event":1}`},
	{"invalid-event", `{"schemaVersion":1,"epoch":"` + epochA + `","sequence":2,"event":"bad"}`},
}

// Each damage, at each place of each file, has exactly its place, and costs nothing else.
func TestDamageHasItsPlace(t *testing.T) {
	for _, ended := range []bool{true, false} {
		for _, d := range damages {
			for at := range 3 {
				for _, file := range []string{"j.2", "j"} {
					if ended || at == 2 {
						t.Run(fmt.Sprintf("%s line %d of %s ended=%v", d.reason, at+1, file, ended), func(t *testing.T) {
							testDamage(t, d.reason, d.line, at, file, ended)
						})
					}
				}
			}
		}
	}
}

func testDamage(t *testing.T, reason, line string, at int, damaged string, ended bool) {
	dir := t.TempDir()
	sequence := uint64(0)
	var want []string
	var anomaly *Anomaly
	for _, name := range []string{"j.2", "j.1", "j"} {
		var content strings.Builder
		for i := range 3 {
			offset := content.Len()
			if name != damaged || i != at {
				sequence++
				text := frameText(epochA, sequence, "12")
				content.WriteString(text)
				want = append(want, fmt.Sprintf("%s %d %d: frame %.8s %d 12 bytes=%d", name, i+1, offset, epochA, sequence, len(text)))
				continue
			}
			content.WriteString(line)
			anomaly = &Anomaly{File: filepath.Join(dir, name), Offset: int64(offset), Line: int64(i + 1), Reason: reason, Position: "interior", Terminated: ended, SkippedBytes: int64(len(line))}
			if ended {
				content.WriteString("\n")
				anomaly.SkippedBytes++
			} else if reason == "invalid-json" {
				anomaly.Reason = "unterminated-line"
			}
			if i == 2 {
				anomaly.Position = "tail"
			}
			want = append(want, fmt.Sprintf("%s %d %d: %s %s terminated=%v skipped=%d", name, i+1, offset, anomaly.Reason, anomaly.Position, ended, anomaly.SkippedBytes))
		}
		inFile(t, filepath.Join(dir, name), content.String())
	}
	files, err := Files(filepath.Join(dir, "j"))
	if err != nil {
		t.Fatal(err)
	}
	opts := ReadOptions[jsontext.Value]{MaxLineBytes: 200, Validate: func(v jsontext.Value) error {
		if string(v) == `"bad"` {
			return errors.New("bad")
		}
		return nil
	}}
	got, err := reading(t, files, opts)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, got, want...)
	report, err := Verify(t.Context(), files, opts)
	if err != nil {
		t.Fatal(err)
	}
	whole := int64(0)
	for _, name := range files {
		st, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		whole += st.Size()
	}
	expect(t, []string{inJSON(t, report)}, inJSON(t, Report{
		Files: 3, Bytes: whole, Frames: 8, Anomalies: 1, Reasons: map[string]uint64{anomaly.Reason: 1},
		SkippedBytes: anomaly.SkippedBytes, Epochs: 1, First: anomaly, Last: anomaly,
	}))
}

func inJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A last line that lacks nothing but its line feed is a warning that skips nothing, and a frame.
func TestFrameWithoutLineFeed(t *testing.T) {
	whole := strings.TrimSuffix(frameText(epochA, 2, `{}`), "\n")
	path := inFile(t, filepath.Join(t.TempDir(), "j"), frameText(epochA, 1, `{}`)+whole)
	got, err := reading(t, []string{path}, ReadOptions[jsontext.Value]{})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, got,
		"j 1 0: frame 0b7c8f5e 1 {} bytes=91",
		"j 2 91: unterminated-line tail terminated=false skipped=0",
		"j 2 91: frame 0b7c8f5e 2 {} bytes=90",
	)
	report, err := Verify(t.Context(), []string{path}, ReadOptions[jsontext.Value]{})
	if err != nil || report.Frames != 2 || report.Anomalies != 1 || report.Reasons["unterminated-line"] != 1 || report.SkippedBytes != 0 {
		t.Errorf("verified %+v, %v", report, err)
	}
}

// What others write, or change in a text editor: files of one line.
func TestOddLines(t *testing.T) {
	one := `{"schemaVersion":1,"epoch":"` + epochA + `","sequence":1,"event":`
	for name, c := range map[string]struct{ content, want string }{
		"empty file":            {"", ""},
		"blank line":            {"\n", "j 1 0: invalid-json tail terminated=true skipped="},
		"blanks":                {" \t\r\n", "j 1 0: invalid-json tail terminated=true skipped="},
		"a byte-order mark":     {"\ufeff" + one + "1}\n", "j 1 0: invalid-json tail terminated=true skipped="},
		"CRLF":                  {one + "1}\r\n", "j 1 0: frame 0b7c8f5e 1 1 bytes="},
		"outer blanks":          {"  " + one + "1} \t\n", "j 1 0: frame 0b7c8f5e 1 1 bytes="},
		"inner blanks":          {one + " 1 }\n", "j 1 0: frame 0b7c8f5e 1 1 bytes="},
		"repeated names inside": {one + `{"a":1,"a":2}}` + "\n", `j 1 0: frame 0b7c8f5e 1 {"a":1,"a":2} bytes=`},
		"lone surrogate":        {one + `"\ud800"}` + "\n", `j 1 0: frame 0b7c8f5e 1 "\ud800" bytes=`},
		"another order": {
			`{"event":[1, 2],"sequence":7,"epoch":"` + epochA + `","schemaVersion":1}` + "\n",
			"j 1 0: frame 0b7c8f5e 7 [1, 2] bytes=",
		},
		"escapes": {
			`{"\u0065vent":0,"sequence":7,"epoch":"\u0030` + epochA[1:] + `","schemaVersion":1}` + "\n",
			"j 1 0: frame 0b7c8f5e 7 0 bytes=",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := reading(t, []string{inFile(t, filepath.Join(t.TempDir(), "j"), c.content)}, ReadOptions[jsontext.Value]{})
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				expect(t, got)
				return
			}
			expect(t, got, c.want+strconv.Itoa(len(c.content)))
		})
	}
}

// Jumps and repeats within an epoch, over lines and files.
func TestGaps(t *testing.T) {
	type step struct {
		epoch    string
		sequence uint64
	}
	for name, c := range map[string]struct {
		steps []step
		gaps  []Gap
	}{
		"none":                        {[]step{{epochA, 1}, {epochA, 2}, {epochA, 3}}, nil},
		"rotated away":                {[]step{{epochA, 41}, {epochA, 42}}, nil},
		"a jump":                      {[]step{{epochA, 1}, {epochA, 5}, {epochA, 6}}, []Gap{{epochA, 1, 5}}},
		"a repeat":                    {[]step{{epochA, 1}, {epochA, 2}, {epochA, 2}, {epochA, 3}}, []Gap{{epochA, 2, 2}}},
		"back":                        {[]step{{epochA, 4}, {epochA, 2}, {epochA, 3}}, []Gap{{epochA, 4, 2}}},
		"next epoch":                  {[]step{{epochA, 4}, {epochB, 1}, {epochB, 2}}, nil},
		"next epoch without a start":  {[]step{{epochA, 4}, {epochB, 3}, {epochB, 4}}, []Gap{{epochB, 0, 3}}},
		"an epoch that comes again":   {[]step{{epochA, 4}, {epochB, 1}, {epochA, 5}}, []Gap{{epochA, 0, 5}}},
		"jump and next epoch's start": {[]step{{epochA, 1}, {epochA, 3}, {epochB, 2}}, []Gap{{epochA, 1, 3}, {epochB, 0, 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			for cut := range len(c.steps) + 1 { // also between two files
				dir := t.TempDir()
				text := [2]string{}
				for i, s := range c.steps {
					f := 0
					if i >= cut {
						f = 1
					}
					text[f] += frameText(s.epoch, s.sequence, "0")
				}
				files := []string{inFile(t, filepath.Join(dir, "j.1"), text[0]), inFile(t, filepath.Join(dir, "j"), text[1])}
				var gaps []Gap
				behind := false
				for rec, err := range Read(t.Context(), files, ReadOptions[jsontext.Value]{}) {
					switch {
					case err != nil || rec.Anomaly != nil:
						t.Fatal(told(rec), err)
					case rec.Gap != nil:
						gaps = append(gaps, *rec.Gap)
						behind = true
						continue
					case behind && rec.Sequence != gaps[len(gaps)-1].Before:
						t.Errorf("behind the gap %v is %d", gaps[len(gaps)-1], rec.Sequence)
					}
					behind = false
				}
				if fmt.Sprint(gaps) != fmt.Sprint(c.gaps) {
					t.Errorf("cut at %d: gaps %v, want %v", cut, gaps, c.gaps)
				}
				report, err := Verify(t.Context(), files, ReadOptions[jsontext.Value]{})
				if err != nil || report.Gaps != uint64(len(c.gaps)) || report.Frames != uint64(len(c.steps)) {
					t.Errorf("cut at %d: verified %+v, %v", cut, report, err)
				}
			}
		})
	}
}
