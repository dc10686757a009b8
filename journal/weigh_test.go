package journal

import (
	stdjson "encoding/json"
	"errors"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

type pointerTo *pointerTo

type branch struct {
	Left  *branch
	Any   any `json:",omitempty"`
	Right []*branch
}

// encodeAny encodes an event and returns the text or the reason.
func encodeAny[T any](event T, most int) (string, error, error) {
	text, reason, cause := newEncoder[T](most).encode(event, nil)
	return string(text), reason, cause
}

// A cycle is refused wherever it lies, also one that makes no JSON: the JSON encoder would follow it until the stack ends,
// which kills the process.
func TestCycles(t *testing.T) {
	var x any
	x = &x
	var p pointerTo
	p = &p
	var two, other any
	two, other = &other, &two
	m := map[string]any{"a": 1}
	m["m"] = m
	s := []any{nil}
	s[0] = s
	b := &branch{}
	b.Left, b.Right = b, []*branch{b, b}
	for name, event := range map[string]any{
		"interface": x, "pointer": p, "two": two, "map": m, "slice": s, "branches": b,
		"in a map": map[string]any{"a": []any{1, struct{ P pointerTo }{p}}},
		"in a key": map[any]int{x: 1}, "in a field": &branch{Any: x}, "in a slice": []*branch{{}, {Right: []*branch{{Any: p}}}},
		"in an embedded struct": struct {
			branch
			Left int
		}{branch{Any: x}, 1},
	} {
		for _, most := range []int{100, 1 << 20} {
			if text, reason, cause := encodeAny(event, most); reason != ErrInvalid || !strings.Contains(cause.Error(), "cycle") {
				t.Errorf("%s became %q (%v, %v), want a cycle", name, text, reason, cause)
			}
		}
	}
	if _, reason, _ := encodeAny(p, 100); reason != ErrInvalid {
		t.Errorf("%v, want %v", reason, ErrInvalid)
	}
	if _, reason, _ := encodeAny(struct{ A, B *any }{B: &x}, 100); reason != ErrInvalid {
		t.Errorf("%v, want %v", reason, ErrInvalid)
	}
	var chain any = "end" // is none
	for range 5000 {
		next := chain
		chain = &next
	}
	if text, _, cause := encodeAny([]any{chain, chain}, 100); text != `["end","end"]` {
		t.Errorf("a chain became %q (%v)", text, cause)
	}
}

type dotted struct {
	Name  string
	Extra string `json:",omitempty"`
}

type Hidden struct{ Name, Own string }

type never struct{ S string }

func (never) IsZero() bool { return true }

type shouting struct{ s string }

func (s shouting) MarshalText() ([]byte, error) { return []byte(s.s[:1]), nil }

type brief string

func (b brief) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(len(b)), 36), nil }

// No event is taken to be larger than it is: what fits exactly is accepted, and one byte less is too little.
func TestWeightIsAtMostTheLength(t *testing.T) {
	long := strings.Repeat("x", 500)
	empty, none := "", (*string)(nil)
	var nothing any
	for i, event := range []any{
		long, []byte(long), map[string]string{"a": "", long: "b"}, []string{"", "", long}, [2]any{1, nil}, []int{1, 2, 3}, []any{[]any{}, map[string]int{}},
		map[int]any{1: nil, -2: true}, struct{}{}, &struct{ A, B *string }{A: &long}, nil, true, 1.5, time.Time{}, []byte(nil), []struct{}{{}, {}},
		jsontext.Value(`"` + strings.Repeat(`\u0041`, 500) + `"`), stdjson.RawMessage(strings.Repeat("  \n", 5000) + "1"),
		struct {
			A string `json:"-"`
			b string
			C string `json:",omitzero"`
			D string `json:"x,omitempty"`
			E any    `json:",omitempty"`
			F any    `json:",omitempty"`
			G never  `json:",omitzero"`
			H []any  `json:",omitempty"`
			I any    `json:",omitzero"`
			J [9]any `json:",omitzero"`
		}{A: long, b: long, E: &empty, F: none, G: never{long}, I: nothing},
		struct {
			E *struct{} `json:",omitempty"`
			F **string  `json:",omitempty"`
			G struct {
				A string `json:",omitempty"`
			} `json:",omitempty"`
			H jsontext.Value `json:",omitempty"`
		}{E: &struct{}{}, F: &none, H: jsontext.Value(`""`)},
		struct {
			dotted
			Name int
		}{dotted{long, ""}, 1},
		struct {
			dotted
			*Hidden
		}{dotted{long, "e"}, &Hidden{long, "o"}},
		struct {
			*Hidden
			Name string `json:"name"`
		}{nil, "n"},
		struct {
			A string
			M map[string]any `json:",embed"`
		}{"a", map[string]any{"": 1}},
		shouting{long}, []shouting{{long}}, map[shouting]int{{long}: 1}, brief(long), []brief{brief(long)}, map[brief]any{brief(long): brief(long)}, []any{int8(1), uint64(2)},
	} {
		want, err := json.Marshal(event, strict)
		if err != nil {
			t.Fatalf("%d %T: %v", i, event, err)
		}
		var sc scales
		for most, fits := range map[int]bool{len(want): true, len(want) - 1: false} {
			if text, reason, cause := encodeAny(event, most); fits != (text == string(want)) || !fits && reason != ErrOversized {
				t.Errorf("%d %T in %d bytes became %q (%v, %v), want %q", i, event, most, text, reason, cause, want)
			}
		}
		sc.most = len(want)
		v := reflect.ValueOf(&event).Elem()
		if err := sc.weighed(v, shapeOf(v.Type())); err != nil || sc.weight > len(want) {
			t.Errorf("%d %T weighs %d of %d (%v)", i, event, sc.weight, len(want), err)
		}
	}
}

type Promoted struct {
	A string
	B *Promoted `json:",omitempty"`
	C []byte    `json:"c"`
}

type random struct {
	Promoted
	*Hidden
	A, D string               `json:",omitzero"`
	E    *string              `json:",omitempty"`
	F    map[string][]bool    `json:",omitempty"`
	G    map[int8]int         `json:"Own,omitempty"`
	H    [2]map[bool]struct{} `json:"-"`
	I    []*Promoted          `json:",omitempty"`
	J    []brief              `json:"j"`
	K    map[brief]never
	L    never                 `json:",omitzero"`
	M    struct{ X *struct{} } `json:",omitempty"`
	N    **string              `json:",omitzero"`
	O    [3]uint8
	P    map[string]*[]string `json:",embed"`
}

// The same for random events.
func TestWeightOfRandomEvents(t *testing.T) {
	encoded, why := 0, error(nil)
	err := quick.Check(func(event random) bool {
		want, err := json.Marshal(&event, strict)
		if err != nil { // a name twice
			why = err
			return true
		}
		encoded++
		text, _, _ := encodeAny(event, len(want))
		_, short, _ := encodeAny(any(&event), len(want)-1)
		return text == string(want) && short == ErrOversized
	}, &quick.Config{MaxCount: 2000})
	if err != nil || encoded < 100 {
		t.Errorf("%d encoded (not: %v): %.2000v", encoded, why, err)
	}
}

type plainStruct struct {
	Name string
	More []string
	Data []byte
}

// What is large is oversized before it is encoded, without the memory that it would take.
func TestLargeEventsTakeNoMemory(t *testing.T) {
	const size = 64 << 20
	large := strings.Repeat("x", size)
	data := []byte(large)
	value := jsontext.Value(`"` + large + `"`)
	check := func(name string, encode func() error) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		reason := encode()
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; !errors.Is(reason, ErrOversized) || took > size/4 {
			t.Errorf("%s: %v, and %d bytes of memory", name, reason, took)
		}
	}
	check("string", func() error { _, r, _ := encodeAny(large, 1024); return r })
	check("bytes", func() error { _, r, _ := encodeAny(data, 1024); return r })
	check("value", func() error { _, r, _ := encodeAny(value, 1024); return r })
	check("raw", func() error { _, r, _ := encodeAny(stdjson.RawMessage(value), 1024); return r })
	check("numbers", func() error { _, r, _ := encodeAny(make([]int, 1<<20), 1024); return r })
	check("field", func() error { _, r, _ := encodeAny(plainStruct{Name: large}, 1024); return r })
	check("pointer", func() error { _, r, _ := encodeAny(&plainStruct{Data: data}, 1024); return r })
	check("within", func() error { _, r, _ := encodeAny([]plainStruct{{More: []string{"", large}}}, 1024); return r })
	check("map of numbers", func() error {
		m := map[int]int{}
		for i := range 2000 {
			m[i] = i
		}
		_, r, _ := encodeAny(m, 1024)
		return r
	})
	check("map", func() error { _, r, _ := encodeAny(map[string]string{"a": large}, 1024); return r })
	check("any", func() error { _, r, _ := encodeAny(map[string]any{"a": []any{1, large}}, 1024); return r })
}

type loose struct{ option jsontext.Options }

func (l loose) MarshalJSONTo(enc *jsontext.Encoder) error {
	return json.MarshalEncode(enc, stdjson.RawMessage("{\"a\":1,\"a\":[\"\xff\"]}"), l.option)
}

type indented struct{}

func (indented) MarshalJSONTo(enc *jsontext.Encoder) error {
	return json.MarshalEncode(enc, []int{1, 2}, jsontext.WithIndent(" "))
}

// A method that encodes with options of its own does not get more into the journal than others.
func TestOptionsOfMethods(t *testing.T) {
	both := loose{json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
	for _, event := range []any{both, []any{1, both}, map[string]loose{"a": both}, struct{ L *loose }{&both}} {
		if text, reason, cause := encodeAny(event, 1000); reason != ErrInvalid || cause == nil {
			t.Errorf("%T became %q", event, text)
		}
	}
	if text, reason, _ := encodeAny(both, 1000); reason != ErrInvalid {
		t.Errorf("%q", text)
	}
	if text, reason, _ := encodeAny(indented{}, 1000); reason == nil && text != "[1,2]" {
		t.Errorf("%q", text)
	}
}
