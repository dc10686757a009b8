package journal

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// strict: equal events give equal bytes, maps included. The rest is the default of json v2: invalid UTF-8, a name that
// occurs twice, NaN and whatever else JSON cannot say are errors, nothing is escaped for HTML, and a value is one line.
var strict = json.Deterministic(true)

// encoder encodes one event at a time. It is used again after a success, and not after anything else: the JSON encoder
// remembers where it stopped.
type encoder[T any] struct {
	json  *jsontext.Encoder // of one value after the other into out
	out   line
	event T // so that encoding it does not allocate
	form  *form
	raw   *[]byte // the event, if it is JSON text already
	plain plain
	text  []byte // that was written without package json; valid until the next use of the encoder
	shape *shape
	scales
}

// line receives what the JSON encoder writes, and ends it when the event is over its bound: an event may be endless.
type line struct {
	most  int
	over  bool
	parts []byte
	event []byte // without the line feed that ends it; valid until the next use of the encoder
}

func newEncoder[T any](most int) *encoder[T] {
	t := reflect.TypeFor[T]()
	e := &encoder[T]{out: line{most: most}, form: formOf(t), shape: shapeOf(t), scales: scales{most: most}}
	e.json = jsontext.NewEncoder(&e.out, strict)
	switch event := any(&e.event).(type) {
	case *jsontext.Value:
		e.raw = (*[]byte)(event)
	case *stdjson.RawMessage:
		e.raw = (*[]byte)(event)
	}
	return e
}

var (
	errOverBound = errors.New("over MaxEventBytes")
	errOptions   = errors.New("MarshalJSONTo wrote what is not strict JSON on one line: a name twice, or invalid UTF-8")
)

// Write takes a part. The encoder writes a line feed behind a whole value and nowhere else.
func (l *line) Write(p []byte) (int, error) {
	text := p
	ends := len(p) > 0 && p[len(p)-1] == '\n'
	if ends {
		text = p[:len(p)-1]
	}
	if len(l.parts)+len(text) > l.most {
		l.over = true
		return 0, errOverBound
	}
	if ends && len(l.parts) == 0 {
		l.event = text // the only part lies where it is until the encoder is used again
		return len(p), nil
	}
	l.parts = append(l.parts, text...)
	if ends {
		l.event = l.parts
	}
	return len(p), nil
}

// encode validates and encodes an event. The reason is ErrInvalid or ErrOversized; a panic in a method of the event, or in
// the validation, is a cause like any other.
func (e *encoder[T]) encode(event T, validate func(T) error) (text []byte, reason, cause error) {
	defer func() {
		if r := recover(); r != nil {
			text, reason, cause = nil, ErrInvalid, fmt.Errorf("panic: %v", r)
		}
	}()
	if validate != nil {
		if err := validate(event); err != nil {
			return nil, ErrInvalid, err
		}
	}
	var zero T
	e.event = event
	if e.isSimple() {
		e.event = zero
		return e.text, nil, nil
	}
	if cap(e.text) > enoughBytes { // one copy of a large event is enough
		e.text = nil
	}
	v := reflect.ValueOf(&e.event).Elem()
	e.out = line{most: e.most, parts: e.out.parts[:0]}
	if !e.shape.plain {
		if err := e.weighed(v, e.shape); err == errOverBound {
			return nil, ErrOversized, nil
		} else if err != nil {
			return nil, ErrInvalid, err
		}
	}
	before := e.json.OutputOffset()
	if err := e.marshal(); e.out.over {
		return nil, ErrOversized, nil
	} else if err != nil {
		return nil, ErrInvalid, withinEvent(err, before)
	}
	if e.custom && (!jsontext.Value(e.out.event).IsValid() || bytes.IndexByte(e.out.event, '\n') >= 0) {
		return nil, ErrInvalid, errOptions
	}
	e.event = zero
	return e.out.event, nil, nil
}

// isSimple reports whether the event can do without package json, and has been written as text then. Text is looked at
// after it was copied: it is the caller's, who may be wrong about who else writes to it.
func (e *encoder[T]) isSimple() (ok bool) {
	switch {
	case e.raw != nil && len(*e.raw) <= e.most:
		e.text = append(e.text[:0], *e.raw...)
		return e.plain.isPlain(e.text, true)
	case e.form != nil:
		e.text, ok = e.form.append(e.text[:0], reflect.ValueOf(&e.event).Elem(), e.most)
		return ok && len(e.text) <= e.most
	}
	return false
}

// marshal is json.MarshalEncode, and for an event that is JSON text already the part of it that does the work.
func (e *encoder[T]) marshal() error {
	if e.raw != nil && len(*e.raw) > 0 { // none at all is written as null
		return e.json.WriteValue(*e.raw)
	}
	return json.MarshalEncode(e.json, &e.event)
}

// withinEvent makes the offsets of an error count from the beginning of its event, not of the encoder's first.
func withinEvent(err error, before int64) error {
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &semantic) && semantic.ByteOffset >= before {
		semantic.ByteOffset -= before
	}
	if errors.As(err, &syntactic) && syntactic.ByteOffset >= before {
		syntactic.ByteOffset -= before
	}
	return err
}
