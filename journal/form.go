package journal

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// form is how package json writes a type that is made of plain fields alone, found once. Nearly all events are of such a
// type, and most of what package json costs them is to find this out again for each. A form writes the same bytes or
// nothing: what is wrong with an event, or needs more than a few lines, is left to package json to say or to write. The
// fuzz test FuzzForm holds the two against each other.
type form struct {
	kind   reflect.Kind
	time   bool // a time.Time
	elem   *form
	fields []formField
}

type formField struct {
	index    int
	name     string // quoted, with its colon
	form     *form
	omitZero bool
	omitNone bool // if its length is 0, or it is nil
}

var timeType = reflect.TypeFor[time.Time]()

// formOf is the form of a type, or nil if it has none. It names what it knows, and knows nothing else: a method that
// encodes, an interface, a map, an embedded field, a tag with an option besides these two has no form. Neither has a type that
// contains itself, so that a form cannot meet a cycle.
func formOf(t reflect.Type) *form {
	f, ok := forms.Load(t)
	if !ok {
		f, _ = forms.LoadOrStore(t, newForm(t, nil))
	}
	return f.(*form)
}

var forms sync.Map // of *form by reflect.Type

func newForm(t reflect.Type, within []reflect.Type) *form {
	if t == timeType {
		return &form{kind: reflect.Struct, time: true}
	}
	if slices.Contains(within, t) || t == reflect.TypeFor[time.Duration]() || t.PkgPath() == "encoding/json" {
		return nil
	}
	if t.Kind() != reflect.Pointer && (has(t, marshalerTo) || slices.ContainsFunc(marshalers, func(m reflect.Type) bool { return has(t, m) })) {
		return nil
	}
	within = append(slices.Clip(within), t)
	f := &form{kind: t.Kind()}
	switch f.kind {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return f
	case reflect.Pointer, reflect.Slice:
		if k := t.Elem().Kind(); f.kind == reflect.Slice && k == reflect.Uint8 { // base64
			return nil
		}
		if f.elem = newForm(t.Elem(), within); f.elem != nil {
			return f
		}
	case reflect.Struct:
		if f.setFields(t, within) {
			return f
		}
	}
	return nil
}

func (f *form) setFields(t reflect.Type, within []reflect.Type) bool {
	names := map[string]bool{}
	for i := range t.NumField() {
		sf := t.Field(i)
		tag, tagged := sf.Tag.Lookup("json")
		if tag == "-" || !sf.IsExported() && !sf.Anonymous && !tagged {
			continue
		}
		name, rest, more := strings.Cut(tag, ",")
		if name == "" {
			name = sf.Name
		}
		m := formField{index: i, name: `"` + name + `":`, form: newForm(sf.Type, within)}
		if m.form == nil || sf.Anonymous || !sf.IsExported() || names[name] || strings.Trim(name, nameLetters) != "" {
			return false
		}
		names[name] = true
		if more && !m.setOptions(sf.Type, strings.Split(rest, ",")) {
			return false
		}
		f.fields = append(f.fields, m)
	}
	return len(f.fields) > 0
}

const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

func (m *formField) setOptions(t reflect.Type, options []string) bool {
	for _, o := range options {
		switch {
		case o == "omitzero" && !m.omitZero && (m.form.time || !has(t, isZeroer)):
			m.omitZero = true
		case o == "omitempty" && !m.omitNone && (m.form.kind == reflect.String || m.form.kind == reflect.Slice):
			m.omitNone = true
		default:
			return false
		}
	}
	return true
}

// leavesOut reports whether the field is left out of its object.
func (m *formField) leavesOut(v reflect.Value) bool {
	if m.omitNone && v.Len() == 0 {
		return true
	}
	if !m.omitZero {
		return false
	}
	if m.form.time {
		return v.Addr().Interface().(*time.Time).IsZero()
	}
	return v.IsZero()
}

// append appends an addressable value. It gives up soon after most bytes, so that what is far too large costs no memory.
func (f *form) append(b []byte, v reflect.Value, most int) (out []byte, ok bool) {
	switch f.kind {
	case reflect.String:
		s := v.String()
		if len(b)+len(s) > most {
			return b, false
		}
		return appendQuoted(b, s)
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool()), true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(b, v.Int(), 10), true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.AppendUint(b, v.Uint(), 10), true
	case reflect.Float32:
		return appendFloat(b, v.Float(), 32)
	case reflect.Float64:
		return appendFloat(b, v.Float(), 64)
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, "null"...), true
		}
		return f.elem.append(b, v.Elem(), most)
	case reflect.Slice:
		return f.appendList(b, v, most)
	}
	if f.time {
		b = append(b, '"')
		b, err := v.Addr().Interface().(*time.Time).AppendText(b)
		return append(b, '"'), err == nil
	}
	return f.appendObject(b, v, most)
}

// appendFloat leaves numbers that need an exponent, or none can say, to package json.
func appendFloat(b []byte, x float64, bits int) (out []byte, ok bool) {
	if a := math.Abs(x); a != 0 && !(a > 1e-5 && a < 1e20) {
		return b, false
	}
	return strconv.AppendFloat(b, x, 'f', -1, bits), true
}

func (f *form) appendList(b []byte, v reflect.Value, most int) (out []byte, ok bool) {
	b = append(b, '[')
	for i := range v.Len() {
		if len(b) > most {
			return b, false
		}
		if i > 0 {
			b = append(b, ',')
		}
		if b, ok = f.elem.append(b, v.Index(i), most); !ok {
			return b, false
		}
	}
	return append(b, ']'), true
}

func (f *form) appendObject(b []byte, v reflect.Value, most int) (out []byte, ok bool) {
	b = append(b, '{')
	first := len(b)
	for i := range f.fields {
		m := &f.fields[i]
		fv := v.Field(m.index)
		if (m.omitNone || m.omitZero) && m.leavesOut(fv) {
			continue
		}
		if len(b) > first {
			b = append(b, ',')
		}
		b = append(b, m.name...)
		if b, ok = m.form.append(b, fv, most); !ok {
			return b, false
		}
	}
	return append(b, '}'), true
}
