package journal

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// job is an event with a type.
type job struct {
	Name string   `json:"name"`
	Tags []string `json:"tags"`
	Mood mood     `json:"mood"`
}

type mood string

func (m *mood) UnmarshalJSON(text []byte) error {
	if *m = mood(text); *m == `"panic"` {
		panic("in a bad mood")
	}
	return nil
}

// An event has its type, all its own; one that is not of the type, or not to the caller's liking, is an anomaly, and a
// panic is no worse.
func TestEventsOfAType(t *testing.T) {
	content := ""
	for i, event := range []string{
		`{"name":"one","tags":["a","b"],"mood":1}`,
		`{"tags":["c"]}`,
		`{"name":7}`,
		`[]`,
		`{"mood":"panic"}`,
		`{"name":"bad"}`,
		`{"name":"worse"}`,
		`{"name":"\ud800","name":"twice","more":0}`,
	} {
		content += frameText(epochA, uint64(i+1), event)
	}
	path := inFile(t, filepath.Join(t.TempDir(), "j"), content)
	var got []string
	asked := 0
	for rec, err := range Read(t.Context(), []string{path}, ReadOptions[job]{Validate: func(j job) error {
		asked++
		switch j.Name {
		case "bad":
			return errors.New("bad")
		case "worse":
			panic("worse")
		}
		return nil
	}}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case rec.Anomaly != nil:
			got = append(got, fmt.Sprint(rec.Line, " ", rec.Anomaly.Reason))
		case rec.Gap != nil:
			got = append(got, fmt.Sprint(rec.Line, " gap ", rec.Gap.After, " ", rec.Gap.Before))
		default:
			got = append(got, fmt.Sprintf("%d %q", rec.Line, rec.Event))
		}
	}
	expect(t, got, `1 {"one" ["a" "b"] "1"}`, `2 {"" ["c"] ""}`, "3 invalid-event", "4 invalid-event", "5 invalid-event",
		"6 invalid-event", "7 invalid-event", "8 gap 2 8", `8 {"twice" [] ""}`)
	if asked != 5 {
		t.Errorf("Validate was asked %d times, want once for each of 5 events of the type", asked)
	}
}

// A raw event and its frame are the text as it lies.
func TestRawIsTheLine(t *testing.T) {
	line := ` {"event": {"b":1, "a":[]} ,"sequence":1,"epoch":"` + epochA + `","schemaVersion":1}` + "\r"
	path := inFile(t, filepath.Join(t.TempDir(), "j"), line+"\n")
	for rec, err := range Read(t.Context(), []string{path}, ReadOptions[jsontext.Value]{}) {
		if err != nil || string(rec.Raw) != line || string(rec.Event) != `{"b":1, "a":[]}` {
			t.Errorf("%q, %q, %v", rec.Raw, rec.Event, err)
		}
	}
}

// Validate of Verify is called by one goroutine at a time, and once for each event.
func TestVerifyValidates(t *testing.T) {
	content := ""
	for i := range 5000 {
		content += frameText(epochA, uint64(i+1), fmt.Sprint(i))
	}
	path := inFile(t, filepath.Join(t.TempDir(), "j"), content)
	asked, told := 0, int64(0)
	var inside atomic.Int32
	report, err := Verify(t.Context(), []string{path}, ReadOptions[jsontext.Value]{
		Validate: func(v jsontext.Value) error {
			if asked++; inside.Add(1) != 1 {
				t.Error("two at a time")
			}
			defer inside.Add(-1)
			runtime.Gosched()
			if len(v) == 3 {
				panic("three digits")
			}
			return nil
		},
		Progress: func(bytes int64) {
			if bytes <= told || bytes > int64(len(content)) {
				t.Errorf("told %d after %d", bytes, told)
			}
			told = bytes
		},
	})
	if err != nil || asked != 5000 || report.Frames != 4100 || report.Reasons["invalid-event"] != 900 || report.Gaps != 1 || told != int64(len(content)) {
		t.Errorf("asked %d times, told %d: %+v, %v", asked, told, report, err)
	}
}

func TestMaxLineBytes(t *testing.T) {
	path := inFile(t, filepath.Join(t.TempDir(), "j"), frameText(epochA, 1, "0"))
	opts := ReadOptions[jsontext.Value]{MaxLineBytes: -1}
	if records, err := reading(t, []string{path}, opts); err == nil || len(records) > 0 {
		t.Errorf("%q, %v", records, err)
	}
	if _, err := Verify(t.Context(), []string{path}, opts); err == nil {
		t.Error("verified")
	}
	if n, err := maxLineOf(0); n != 16<<20 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// A verification that is broken off by a panic leaves nothing running, and so nothing that uses closed files.
func TestVerifyBrokenOff(t *testing.T) {
	path := inFile(t, filepath.Join(t.TempDir(), "j"), strings.Repeat(frameText(epochA, 1, "0"), 20_000))
	before := descriptors(t)
	func() {
		defer func() {
			if r := recover(); r != "enough" {
				t.Errorf("panic %v", r)
			}
		}()
		_, err := Verify(t.Context(), []string{path}, ReadOptions[jsontext.Value]{Progress: func(int64) { panic("enough") }})
		t.Errorf("went on: %v", err)
	}()
	stacks := make([]byte, 1<<20)
	if strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "(*lines).next") {
		t.Error("it still reads")
	}
	for strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "(*inspection).cut") {
		runtime.Gosched() // it is on its way out; if it were not, the test would not end
	}
	if after := descriptors(t); !slices.Equal(after, before) {
		t.Errorf("open before: %q, after: %q", before, after)
	}
}
