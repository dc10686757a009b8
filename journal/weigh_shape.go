package journal

import (
	"encoding"
	stdjson "encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// shape is what the scales know of a type, found once.
type shape struct {
	kind      reflect.Kind // Invalid if a MarshalJSONTo writes it
	plain     bool         // nothing in it can be long or return to itself but by way of JSON
	raw       bool         // JSON text
	bytes     bool
	key, elem *shape
	members   []fieldShape // those that are not plain
}

// fieldShape is a field that may become a member of the object.
type fieldShape struct {
	index    []int // through embedded structs
	shape    *shape
	presence presence
	omitZero bool
	omitNone bool // if its length is 0
}

type presence int

const (
	sure presence = iota
	unlessEmpty
	unknown // another field of its name may hide it, or a method IsZero
)

// of is the field, unless it is certainly left out.
func (m *fieldShape) of(v reflect.Value) (f reflect.Value, ok bool) {
	for _, i := range m.index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return v, false
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v, !(m.omitZero && v.IsZero() || m.omitNone && v.Len() == 0)
}

var shapes sync.Map // of *shape by reflect.Type

func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	known := map[reflect.Type]*shape{}
	s := newShape(t, known)
	for changed := true; changed; { // what reaches something that is not plain is not plain
		changed = false
		for _, s := range known {
			if s.plain && s.reachesMore() {
				s.plain, changed = false, true
			}
		}
	}
	for _, s := range known {
		s.members = slices.DeleteFunc(s.members, func(m fieldShape) bool { return m.shape.plain })
	}
	shapes.Store(t, s)
	return s
}

func (s *shape) reachesMore() bool {
	more := s.key != nil && !s.key.plain || s.elem != nil && !s.elem.plain
	for _, m := range s.members {
		more = more || !m.shape.plain
	}
	return more
}

var (
	isZeroer    = reflect.TypeFor[interface{ IsZero() bool }]()
	marshalerTo = reflect.TypeFor[json.MarshalerTo]()
	marshalers  = []reflect.Type{
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextAppender](), reflect.TypeFor[encoding.TextMarshaler](),
	}
)

// has says whether a type or the pointer to it has the methods.
func has(t, methods reflect.Type) bool {
	return t.Implements(methods) || reflect.PointerTo(t).Implements(methods)
}

func newShape(t reflect.Type, known map[reflect.Type]*shape) *shape {
	if s := known[t]; s != nil {
		return s
	}
	s := &shape{kind: t.Kind(), plain: true}
	known[t] = s
	if t == reflect.TypeFor[jsontext.Value]() || t == reflect.TypeFor[stdjson.RawMessage]() {
		s.raw, s.plain = true, false
		return s
	}
	if s.kind != reflect.Pointer && s.kind != reflect.Interface { // whose methods are not asked
		if has(t, marshalerTo) {
			s.kind, s.plain = reflect.Invalid, false
			return s
		}
		for _, m := range marshalers {
			if has(t, m) {
				return s
			}
		}
	}
	switch s.kind {
	case reflect.String, reflect.Interface:
		s.plain = false
	case reflect.Pointer:
		s.elem = newShape(t.Elem(), known)
		s.plain = t.Elem().Kind() != reflect.Pointer
	case reflect.Slice:
		s.elem = newShape(t.Elem(), known)
		s.bytes = t.Elem().Kind() == reflect.Uint8
		s.plain = false
	case reflect.Array:
		s.elem = newShape(t.Elem(), known)
	case reflect.Map:
		s.key, s.elem = newShape(t.Key(), known), newShape(t.Elem(), known)
		s.plain = false
	case reflect.Struct:
		s.embed(t, nil, map[reflect.Type]bool{t: true}, true, known)
		s.hide(t)
	}
	return s
}

// embed adds the fields of a struct, and those of the structs in it that have no name, as package json does: of a type
// that was met before, only the fields.
func (s *shape) embed(t reflect.Type, index []int, seen map[reflect.Type]bool, deeper bool, known map[reflect.Type]*shape) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if tag == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		at := append(append([]int(nil), index...), i)
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && (f.Anonymous && name == "" || strings.Contains(options, "embed")) {
			if deeper {
				again := seen[inner]
				seen[inner] = true
				s.embed(inner, at, seen, !again, known)
			}
			continue
		}
		m := fieldShape{index: at, shape: newShape(f.Type, known)}
		m.omitZero = strings.Contains(options, "omitzero")
		switch {
		case !f.IsExported() && inner.Kind() != reflect.Struct:
			continue
		case strings.Contains(options, "embed") || m.omitZero && has(f.Type, isZeroer):
			m.presence, m.omitZero = unknown, false
		case strings.Contains(options, "omitempty"):
			m.presence = unlessEmpty
			switch m.shape.kind {
			case reflect.String, reflect.Map, reflect.Slice:
				if !m.shape.raw {
					m.omitNone = true
				}
			}
		}
		s.members = append(s.members, m)
	}
}

// hide marks the fields whose names are not theirs alone.
func (s *shape) hide(t reflect.Type) {
	name := func(m fieldShape) string {
		f := t.FieldByIndex(m.index)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			return name
		}
		return f.Name
	}
	count := map[string]int{}
	for _, m := range s.members {
		count[name(m)]++
	}
	for i := range s.members {
		if count[name(s.members[i])] > 1 {
			s.members[i].presence, s.members[i].omitZero, s.members[i].omitNone = unknown, false, false
		}
	}
}
