package journal

import (
	"errors"
	"reflect"
)

// scales weigh an event before it is encoded: the JSON encoder follows a cycle of pointers until the stack ends, which
// kills the process, and holds a string in full before it is found to be over the bound. The weight is at most the length
// of the encoded event, so what is too heavy is oversized. What a method of the event will write is not known: it weighs 1.
type scales struct {
	most   int
	weight int
	steps  int   // values that were looked at
	custom bool  // some of it is written by MarshalJSONTo, which may write with options of its own
	path   []hop // to the value that is weighed
}

// hop is a pointer, map or slice that was entered.
type hop struct {
	typ  reflect.Type
	at   uintptr
	size int
}

const (
	deepest   = 10_000 // levels of JSON, as package jsontext has it; and pointers in a row, each of which takes stack
	moreSteps = 10_000 // over the bound, since not every value weighs something
)

var (
	errCycle     = errors.New("a cycle, or nested deeper than 10000")
	errUnweighed = errors.New("weighing takes too long")
)

// weighed says whether a value is too heavy (errOverBound), or cannot be encoded (errCycle).
func (s *scales) weighed(v reflect.Value, sh *shape) error {
	s.weight, s.steps, s.custom, s.path = 0, 0, false, s.path[:0]
	err := s.weigh(v, sh, 0)
	switch {
	case err == errUnweighed:
		s.custom = true
		return nil
	case err == errOverBound && s.returns():
		return errCycle
	}
	return err
}

// returns says whether the path enters the same thing twice. Then it is not large, but endless.
func (s *scales) returns() bool {
	seen := map[hop]bool{}
	for _, h := range s.path {
		if seen[h] {
			return true
		}
		seen[h] = true
	}
	return false
}

func (s *scales) add(n int) error {
	if s.weight += n; s.weight > s.most {
		return errOverBound
	}
	return nil
}

func (s *scales) weigh(v reflect.Value, sh *shape, depth int) (err error) {
	if sh.kind == reflect.String && !sh.plain { // most are
		return s.add(v.Len() + len(`""`))
	}
	at := len(s.path)
	for hops := 0; !sh.plain && (sh.kind == reflect.Pointer || sh.kind == reflect.Interface); hops++ {
		switch {
		case v.IsNil():
			s.path = s.path[:at]
			return s.add(len("null"))
		case hops > deepest:
			return errCycle
		case sh.kind == reflect.Pointer:
			s.enter(v, 0)
			v, sh = v.Elem(), sh.elem
		default:
			v = v.Elem()
			sh = shapeOf(v.Type())
		}
	}
	if s.steps++; s.steps > s.most+moreSteps {
		return errUnweighed
	}
	switch {
	case depth > deepest:
		return errCycle
	case sh.plain:
		err = s.add(1)
	case sh.raw:
		err = s.add(s.rawWeight(v.Bytes()))
	case sh.kind == reflect.String || sh.bytes:
		err = s.add(v.Len() + len(`""`))
	case sh.kind == reflect.Slice || sh.kind == reflect.Array:
		err = s.list(v, sh, depth+1)
	case sh.kind == reflect.Map:
		err = s.entries(v, sh, depth+1)
	case sh.kind == reflect.Struct:
		err = s.members(v, sh, depth+1)
	default: // a method
		s.custom = true
		err = s.add(1)
	}
	if err == nil {
		s.path = s.path[:at]
	}
	return err
}

func (s *scales) enter(v reflect.Value, size int) {
	s.path = append(s.path, hop{v.Type(), v.Pointer(), size})
}

// rawWeight is of JSON text, which loses its blanks, and whose escapes of six bytes may become one.
func (s *scales) rawWeight(text []byte) int {
	if len(text)/6 <= s.most {
		return 1
	}
	n := 0
	for _, c := range text {
		if c > ' ' {
			if n++; n/6 > s.most {
				return n / 6
			}
		}
	}
	return 1
}

func (s *scales) list(v reflect.Value, sh *shape, depth int) error {
	if sh.kind == reflect.Slice {
		s.enter(v, v.Len())
	}
	if sh.elem.plain {
		return s.add(1 + 2*v.Len())
	}
	err := s.add(1)
	for i := 0; i < v.Len() && err == nil; i++ {
		if err = s.weigh(v.Index(i), sh.elem, depth); err == nil {
			err = s.add(len(`,`))
		}
	}
	return err
}

func (s *scales) entries(v reflect.Value, sh *shape, depth int) error {
	if v.Len() == 0 {
		return s.add(len(`{}`))
	}
	if sh.key.plain && sh.elem.plain {
		return s.add(1 + v.Len()*len(`"":1,`))
	}
	s.enter(v, 0)
	err := s.add(1 + v.Len()*len(`:,`))
	key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
	for i := v.MapRange(); err == nil && i.Next(); {
		key.SetIterKey(i)
		if err = s.weigh(key, sh.key, depth); err == nil {
			value.SetIterValue(i)
			err = s.weigh(value, sh.elem, depth)
		}
	}
	return err
}

func (s *scales) members(v reflect.Value, sh *shape, depth int) error {
	err := s.add(1)
	for i := 0; i < len(sh.members) && err == nil; i++ {
		m := &sh.members[i]
		f, ok := m.of(v)
		if !ok {
			continue
		}
		before, at := s.weight, len(s.path)
		switch m.presence {
		case sure:
			s.weight += len(`"":,`)
		case unlessEmpty:
			s.weight -= len(`null`) // the longest of what is left out, so that leaving it out is no loss
		}
		err = s.weigh(f, m.shape, depth)
		if m.presence == unknown && (err == nil || err == errOverBound) {
			s.custom = s.custom || err != nil // for the rest of it has not been seen
			s.weight, s.path, err = before, s.path[:at], nil
		}
	}
	return err
}
