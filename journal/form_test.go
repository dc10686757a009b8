package journal

import (
	"bytes"
	stdjson "encoding/json"
	"math"
	"net/netip"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

type level string

type counted int

func (c counted) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(c), 36), nil }

type pointed struct{ N int }

func (*pointed) MarshalJSON() ([]byte, error) { return []byte(`"its own"`), nil }

type selfWritten struct{ A int }

func (selfWritten) MarshalJSONTo(enc *jsontext.Encoder) error { return enc.WriteToken(jsontext.Null) }

type zeroed int

func (zeroed) IsZero() bool { return true }

type within struct {
	Name string `json:"name"`
	At   time.Time
}

type around struct {
	within
	More string
}

type Outer struct{ A int }

type itself struct{ Next *itself }

type formed struct {
	Text  string     `json:"text"`
	Maybe string     `json:",omitempty"`
	Zero  string     `json:"zero_2,omitzero"`
	Level level      `json:"level"`
	X     float64    `json:"x"`
	Y     float32    `json:"y,omitzero"`
	N     int64      `json:"n"`
	U     uint8      `json:"u"`
	OK    bool       `json:"ok"`
	At    time.Time  `json:"at,omitzero"`
	Ptr   *time.Time `json:"ptr"`
	Tags  []string   `json:"tags,omitempty"`
	Ints  []int      `json:"ints"`
	In    within     `json:"in"`
	Ins   []*within  `json:"ins,omitempty,omitzero"`
	_     string
	Out   func() `json:"-"`
}

// byForm is what the form of a type writes, unless it has none or leaves the event to package json.
func byForm(v reflect.Value, most int) (text []byte, ok bool) {
	f := formOf(v.Type())
	if f == nil {
		return nil, false
	}
	text, ok = f.append(nil, v, most)
	return text, ok && len(text) <= most
}

// What a form writes is what package json writes, whatever the event; and of an event that package json refuses it writes
// nothing.
func FuzzForm(f *testing.F) {
	f.Add("plain", "", 1.5, int64(-3), int64(0), int16(0), byte(7))
	f.Add("<\"\\\x00\x1f\x7f\u2028>\t\b\f\r\n", "\ufeff\U0001F600", math.Copysign(0, -1), int64(math.MinInt64), int64(1<<40), int16(90), byte(255))
	f.Add("\xff", "\xed\xa0\x80", math.NaN(), int64(1), int64(math.MaxInt64), int16(-1440), byte(1))
	f.Add("\ufffd", "x", 0.1, int64(7), int64(7), int16(1), byte(2))
	f.Add("\ufffd", "x", 5e-7, int64(math.MaxInt64), int64(7), int16(1), byte(2))
	f.Add("", "x", math.MaxFloat64, int64(0), int64(-62135596800), int16(1500), byte(3))
	f.Add("x", "x", math.Inf(-1), int64(0), int64(253402300800), int16(0), byte(64))
	f.Fuzz(func(t *testing.T, a, b string, x float64, n, at int64, zone int16, which byte) {
		when := time.Unix(at, n%1e9).In(time.FixedZone("", int(zone)*60))
		e := formed{Text: a, Maybe: b, X: x, Y: float32(x), N: n, U: which, OK: which&1 > 0, At: when, In: within{Name: b, At: when}}
		if which&2 > 0 {
			e.Zero, e.Level, e.Tags = b, level(a), []string{a, b, ""}
		}
		if which&4 > 0 {
			e.At, e.Ptr, e.Ints = time.Time{}, &when, []int{int(n), 0, -1}
		}
		if which&8 > 0 {
			e.Ins = []*within{nil, {Name: a}, &e.In}
		}
		want, err := json.Marshal(&e, strict)
		got, ok := byForm(reflect.ValueOf(&e).Elem(), 1<<20)
		if ok && (err != nil || !bytes.Equal(got, want)) {
			t.Errorf("%+v\nform %s\njson %s (%v)", e, got, want, err)
		}
		if exact := x == 0 || math.Abs(x) > 1e-4 && math.Abs(x) < 1e19; !ok && err == nil && exact && len(want) < 1<<18 {
			t.Errorf("%+v: package json alone wrote it: %s", e, want)
		}
		if _, ok := byForm(reflect.ValueOf(&e).Elem(), len(want)-1); ok && err == nil {
			t.Errorf("%+v: %d bytes are not over the bound of %d", e, len(got), len(want)-1)
		}
	})
}

// structOf is a struct of strings that go vet and staticcheck would not let pass.
func structOf(fields ...reflect.StructField) any {
	for i := range fields {
		fields[i].Type = reflect.TypeFor[string]()
	}
	return reflect.New(reflect.StructOf(fields)).Elem().Interface()
}

// Which types have a form.
func TestFormOf(t *testing.T) {
	for _, has := range []any{
		"", 1, 2.5, true, time.Time{}, []string{}, []time.Time{}, new(int), formed{}, &formed{}, []within{}, level(""), zeroed(0), [][]float32{},
		struct {
			A int `xml:"-" json:",omitzero"`
			_ int
		}{},
		struct {
			A int `json:""`
		}{},
	} {
		if formOf(reflect.TypeOf(has)) == nil {
			t.Errorf("%T has no form", has)
		}
	}
	for _, hasNot := range []any{
		time.Duration(1), []byte{}, [2]int{}, map[string]int{}, counted(1), pointed{}, &pointed{}, around{}, struct{ Outer }{}, struct{ *Outer }{}, selfWritten{}, itself{}, netip.Addr{},
		stdjson.Number("1"), stdjson.RawMessage{}, jsontext.Value{}, uintptr(1), complex(1, 1), make(chan int), struct{}{}, []any{}, func() {},
		struct{ a int }{},
		struct{ A any }{},
		structOf(reflect.StructField{Name: "A", Tag: `json:"a"`}, reflect.StructField{Name: "B", Tag: `json:"a"`}),
		structOf(reflect.StructField{Name: "A"}, reflect.StructField{Name: "b", Tag: `json:"b"`, PkgPath: "journal"}),
		struct {
			A zeroed `json:",omitzero"`
		}{},
		struct {
			A *string `json:",omitempty"`
		}{},
		struct {
			A within `json:",omitempty"`
		}{},
		struct {
			A int `json:",string"`
		}{},
		struct {
			A time.Time `json:",format:unix"`
		}{},
		structOf(reflect.StructField{Name: "A", Tag: `json:"a,"`}),
		structOf(reflect.StructField{Name: "A", Tag: `json:",omitzero,omitzero"`}),
		structOf(reflect.StructField{Name: "A", Tag: `json:",omitempty,omitempty"`}),
		struct {
			A int `json:"'a'"`
		}{},
		structOf(reflect.StructField{Name: "A", Tag: `json:"-,"`}),
		struct {
			A int `json:"é"`
		}{},
		struct {
			A struct{ B chan int }
		}{},
	} {
		if formOf(reflect.TypeOf(hasNot)) != nil {
			t.Errorf("%T has a form", hasNot)
		}
	}
}

var someTypes = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[bool](), reflect.TypeFor[int8](), reflect.TypeFor[int](), reflect.TypeFor[uint16](),
	reflect.TypeFor[uint64](), reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[time.Time](), reflect.TypeFor[level](),
	reflect.TypeFor[[]byte](), reflect.TypeFor[time.Duration](), reflect.TypeFor[counted](), reflect.TypeFor[pointed](), reflect.TypeFor[zeroed](),
	reflect.TypeFor[any](), reflect.TypeFor[map[string]int](), reflect.TypeFor[[2]bool](), reflect.TypeFor[stdjson.Number](), reflect.TypeFor[within](),
	reflect.TypeFor[around](), reflect.TypeFor[jsontext.Value](), reflect.TypeFor[netip.Addr](), reflect.TypeFor[itself](),
}

var someTags = []string{
	``, ``, `json:"a"`, `json:"b_2"`, `json:"c,omitempty"`, `json:"d,omitzero"`, `json:",omitempty"`, `json:",omitzero"`, `json:",omitzero,omitempty"`, `json:"-"`,
	`json:"-,"`, `json:"e,string"`, `json:"a b"`, `json:"é"`, `json:"<&>"`, `json:"f,embed"`, `json:"g,format:unix"`, `json:"h,"`, `json:"'i'"`, `json:"j,OmitEmpty"`,
	`json:"k, omitempty"`, `json:"l,case:ignore"`, `json:`, `json: "m"`, `xml:"n" json:"o"`, `json:"p,unknown"`, "json:\"q\t\"", `json:""`,
}

func randomType(t *rapid.T, depth int) reflect.Type {
	switch n := rapid.IntRange(0, 9).Draw(t, "kind"); {
	case n < 6 || depth == 0:
		most := rapid.SampledFrom([]int{10, 10, len(someTypes)}).Draw(t, "types") // the first ten have a form
		return rapid.SampledFrom(someTypes[:most]).Draw(t, "type")
	case n == 6:
		return reflect.SliceOf(randomType(t, depth-1))
	case n == 7:
		return reflect.PointerTo(randomType(t, depth-1))
	}
	return randomStruct(t, depth)
}

func randomStruct(t *rapid.T, depth int) reflect.Type {
	most := rapid.SampledFrom([]int{9, 9, len(someTags)}).Draw(t, "tags")
	var fields []reflect.StructField
	for i := range rapid.IntRange(0, 4).Draw(t, "fields") {
		fields = append(fields, reflect.StructField{
			Name: "F" + strconv.Itoa(i), Type: randomType(t, depth-1), Tag: reflect.StructTag(rapid.SampledFrom(someTags[:most]).Draw(t, "tag")),
		})
	}
	return reflect.StructOf(fields)
}

// furnish gives a value that has a form something of everything.
func furnish(t *rapid.T, v reflect.Value, f *form) {
	switch {
	case f.time:
		at := time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "at"), rapid.Int64Range(0, 1e9).Draw(t, "ns"))
		v.Set(reflect.ValueOf(at.In(time.FixedZone("", rapid.IntRange(-90000, 90000).Draw(t, "zone")))))
	case f.kind == reflect.String:
		v.SetString(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "\xff", "\u2028<", "\x00\x1f\x7f", `"\`})).Draw(t, "text"))
	case f.kind == reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case v.CanInt():
		v.SetInt(rapid.Int64().Draw(t, "int"))
	case v.CanUint():
		v.SetUint(rapid.Uint64().Draw(t, "uint"))
	case v.CanFloat():
		v.SetFloat(rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, 1e-6, 1e21, math.NaN(), math.Inf(1)})).Draw(t, "float"))
	case f.kind == reflect.Pointer && rapid.Bool().Draw(t, "pointer"):
		v.Set(reflect.New(v.Type().Elem()))
		furnish(t, v.Elem(), f.elem)
	case f.kind == reflect.Slice && rapid.Bool().Draw(t, "slice"):
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(0, 3).Draw(t, "length"), 3))
		for i := range v.Len() {
			furnish(t, v.Index(i), f.elem)
		}
	case f.kind == reflect.Struct:
		for i := range f.fields {
			furnish(t, v.Field(f.fields[i].index), f.fields[i].form)
		}
	}
}

// The same for random structs, whatever the tags and methods.
func TestFormsOfRandomTypes(t *testing.T) {
	formed, written := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 5 {
			typ := randomStruct(t, 3)
			f := formOf(typ)
			if f == nil {
				continue
			}
			formed++
			v := reflect.New(typ).Elem()
			furnish(t, v, f)
			got, ok := byForm(v, 1<<20)
			if !ok {
				continue
			}
			written++
			want, err := json.Marshal(v.Addr().Interface(), strict)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%v\nform %s\njson %s (%v)", typ, got, want, err)
			}
		}
	})
	if t.Logf("%d types with a form, %d events written", formed, written); written < 3 { // of 20 checks with -short
		t.Errorf("%d types with a form, %d events written", formed, written)
	}
}

// The form of a type is found once: each processor has an encoder, and the pool of them is emptied now and then.
func TestFormIsFoundOnce(t *testing.T) {
	type request struct{ Kind string }
	if a, b := newEncoder[request](100).form, newEncoder[request](100).form; a != b || a == nil {
		t.Errorf("%p, then %p", a, b)
	}
	type none struct{ Any any }
	if f := newEncoder[none](100).form; f != nil {
		t.Errorf("%v has a form: %v", none{}, f)
	}
}
