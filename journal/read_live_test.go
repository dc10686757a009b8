package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// The newest file ends within a line when it is opened, and something becomes of the line before its end is read:
//
//	reader   open, size                          read the end
//	writer               write the rest, or cut
//
// A line that goes on or is cut off was in flight, and is nothing. One that stays is damage, and so is any without
// Generations.
func TestUnfinishedLineBesideWriter(t *testing.T) {
	body := ""
	for n := range 2000 { // more than Verify has in hand at once
		body += frameText(epochA, uint64(n+1), `"`+strings.Repeat("x", 300)+`"`)
	}
	next := frameText(epochA, 2001, "0")
	long := strings.Repeat("x", 1<<17)
	for name, c := range map[string]struct {
		torn, rest string
		cut        int // bytes cut off before
		sound      bool
	}{
		"finished":        {torn: next[:20], rest: next[20:], sound: true},
		"goes on":         {torn: next[:20], rest: next[20:30], sound: true},
		"only the LF":     {torn: next[:len(next)-1], rest: "\n", sound: true},
		"too long":        {torn: long, rest: "x", sound: true},
		"cut and written": {torn: next[:20], cut: 20, rest: next + next, sound: true},
		"stays":           {torn: next[:20]},
	} {
		for _, generations := range []bool{true, false} {
			if !generations && c.cut > 0 {
				continue // what was there at open is gone: whether that is seen before, is a matter of time
			}
			t.Run(fmt.Sprint(name, " ", generations), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "j")
				opts := func() ReadOptions[jsontext.Value] {
					inFile(t, path, body+c.torn)
					first := true
					return ReadOptions[jsontext.Value]{MaxLineBytes: 1000, Generations: generations, Validate: func(jsontext.Value) error {
						if first {
							tamper(t, path, c.cut, c.rest)
						}
						first = false
						return nil
					}}
				}
				frames, anomalies := uint64(0), uint64(0)
				var err error
				for rec, e := range Read(t.Context(), []string{path}, opts()) {
					if err = e; e != nil {
						break
					} else if rec.Anomaly != nil {
						anomalies++
					} else if rec.Gap == nil {
						frames++
					}
				}
				report, verr := Verify(t.Context(), []string{path}, opts())
				if err != nil || verr != nil {
					t.Fatal(err, verr)
				}
				if report.Frames != frames || report.Anomalies != anomalies {
					t.Errorf("read %d frames, %d anomalies; verified %+v", frames, anomalies, report)
				}
				if sound := c.sound && generations; sound != (report.Anomalies == 0) || sound && (report.Bytes != int64(len(body)) || report.Frames != 2000) {
					t.Errorf("sound should be %t: %+v", sound, report)
				}
			})
		}
	}
}

// tamper cuts bytes off the end of a file and appends others.
func tamper(t *testing.T, path string, cut int, rest string) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil && cut > 0 {
		err = f.Truncate(st.Size() - int64(cut))
	}
	if err == nil {
		_, err = f.WriteString(rest)
	}
	if err != nil {
		t.Error(err)
	}
}

// What was read without its end and is cut off then was in flight, as long as no line is lost. The waiting ends with the
// context.
func TestUnfinishedLineCutOff(t *testing.T) {
	frame := frameText(epochA, 1, "0")
	path := inFile(t, filepath.Join(t.TempDir(), "j"), frame+"torn")
	files, err := openPaths([]string{path}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(files)
	l := lines{openFile: files[0], maxLine: 1000, end: files[0].stat.Size}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	from := int64(len(frame))
	for _, c := range []struct {
		cut      int
		inFlight bool
		want     error
	}{{0, false, cause}, {1, true, nil}, {3, true, nil}, {1, false, errTruncated}} {
		tamper(t, path, c.cut, "")
		if inFlight, err := l.inFlight(ctx, from); inFlight != c.inFlight || !errors.Is(err, c.want) {
			t.Errorf("cut by %d: in flight %t, %v", c.cut, inFlight, err)
		}
	}
}
