package journal

import (
	"fmt"
	"reflect"
)

// decodable refuses a type that holds a pointer which leads to pointers for ever, as type P *P: to decode anything but null
// into it does not end before the stack does, which no recover catches. Any other type ends with the text.
func decodable(t reflect.Type) error {
	if endless(t, map[reflect.Type]bool{}) {
		return fmt.Errorf("journal: no event can be decoded into the type %v: a pointer in it leads to nothing but pointers", t)
	}
	return nil
}

func endless(t reflect.Type, seen map[reflect.Type]bool) bool {
	for met := map[reflect.Type]bool{}; t.Kind() == reflect.Pointer; t = t.Elem() {
		if met[t] {
			return true
		}
		met[t] = true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Map:
		return endless(t.Key(), seen) || endless(t.Elem(), seen)
	case reflect.Slice, reflect.Array:
		return endless(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if endless(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}
