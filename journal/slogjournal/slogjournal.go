// Package slogjournal writes the records of log/slog to a journal: each is an event, as slog.JSONHandler writes it, with
// the time, the level, the message and the attributes.
package slogjournal

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"

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
// the second one becomes name#2. Text that is not UTF-8 has U+FFFD in its place.
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

// MarshalJSONTo writes the event as the JSON that it is.
func (e Event) MarshalJSONTo(enc *jsontext.Encoder) error {
	err := enc.WriteValue(jsontext.Value(e))
	if errors.Is(err, jsontext.ErrDuplicateName) { // and nothing was written
		return writeRenamed(enc, e)
	}
	return err
}

// UnmarshalJSONFrom takes any JSON value as it lies.
func (e *Event) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	text, err := dec.ReadValue()
	*e = append((*e)[:0], text...)
	return err
}

// writeRenamed writes a value whose objects may repeat names.
func writeRenamed(enc *jsontext.Encoder, text Event) error {
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	for {
		kind, members := dec.StackIndex(dec.StackDepth())
		next := dec.PeekKind()
		var err error
		switch {
		case next == '{' || next == '[' || next == '}' || next == ']':
			err = copyToken(enc, dec)
		case kind == '{' && members%2 == 0:
			err = copyName(enc, dec)
		default:
			var value jsontext.Value
			if value, err = dec.ReadValue(); err == nil {
				err = enc.WriteValue(value)
			}
		}
		if err != nil || dec.StackDepth() == 0 {
			return err
		}
	}
}

func copyToken(enc *jsontext.Encoder, dec *jsontext.Decoder) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	return enc.WriteToken(token)
}

// copyName finds a name that its object does not have yet.
func copyName(enc *jsontext.Encoder, dec *jsontext.Decoder) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	name := token.String()
	err = enc.WriteToken(jsontext.String(name))
	for n := 2; errors.Is(err, jsontext.ErrDuplicateName); n++ {
		err = enc.WriteToken(jsontext.String(fmt.Sprintf("%s#%d", name, n)))
	}
	return err
}
