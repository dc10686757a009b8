// Package slogjournal writes the records of log/slog to a journal: each is an event, as slog.JSONHandler writes it, with
// the time, the level, the message and the attributes.
package slogjournal

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"log/slog"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/heirlock/heirlock/journal"
)

// Event is one record as JSON text. As the type of a journal's events it is written and read as that JSON.
type Event jsontext.Value

// New makes a slog.Handler that submits records to a journal, and never waits. The options are those of slog.JSONHandler,
// and may be nil; what WithAttrs and WithGroup say is formatted once, not for each record.
//
// A record that the journal refuses is an error of Handle, a *journal.RefusedError, and counted in the journal's Status;
// the methods of slog.Logger drop that error. Names that occur twice in one object, which no event may have, are kept:
// the second one becomes name#2. Text that is not Unicode, as bytes or as the escape of half a surrogate pair, has U+FFFD in
// its place.
func New(j *journal.Journal[Event], opts *slog.HandlerOptions) slog.Handler {
	return slog.NewJSONHandler(records{j}, opts)
}

// records is where slog.JSONHandler writes: one call with one line for each record, whose error it returns.
type records struct{ journal *journal.Journal[Event] }

func (r records) Write(line []byte) (int, error) {
	if _, err := r.journal.Submit(Event(bytes.TrimSuffix(line, []byte{'\n'}))); err != nil {
		return 0, err
	}
	return len(line), nil
}

// MarshalJSONTo writes the event as the JSON that it is, with what no event may have mended.
func (e Event) MarshalJSONTo(enc *jsontext.Encoder) error {
	err := enc.WriteValue(jsontext.Value(e))
	if _, ok := errors.AsType[*jsontext.SyntacticError](err); ok { // and nothing was written
		return writeMended(enc, e)
	}
	return err
}

// UnmarshalJSONFrom takes any JSON value as it lies.
func (e *Event) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	text, err := dec.ReadValue()
	*e = append((*e)[:0], text...)
	return err
}

var errTwoValues = errors.New("more than one value")

// writeMended writes a value whose objects may repeat names, and whose strings may be no Unicode.
func writeMended(enc *jsontext.Encoder, text Event) error {
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var open []names // one for each object and array that is open; of an array it is never made
	for {
		kind, members := dec.StackIndex(dec.StackDepth())
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		switch token.Kind() {
		case '{', '[':
			open = append(open, nil)
		case '}', ']':
			open = open[:len(open)-1]
		case '"':
			text := token.String() // with U+FFFD
			if kind == '{' && members%2 == 0 {
				text = open[len(open)-1].own(text)
			}
			token = jsontext.String(text)
		}
		if err := enc.WriteToken(token); err != nil {
			return err
		}
		if dec.StackDepth() > 0 {
			continue
		}
		if _, err := dec.ReadToken(); err != io.EOF {
			return cmp.Or(err, errTwoValues)
		}
		return nil
	}
}

// names are those that an object has so far, each with the number that its next repetition tries first. So an object is
// renamed in linear time: a number that is taken is passed over once.
type names map[string]int

// own is the name, or name#2 and so on if the object has it.
func (n *names) own(name string) string {
	if *n == nil {
		*n = names{}
	}
	own := name
	next := (*n)[name]
	for (*n)[own] != 0 {
		own = name + "#" + strconv.Itoa(next)
		next++
	}
	(*n)[name] = max(next, 2)
	if own != name {
		(*n)[own] = 2
	}
	return own
}
