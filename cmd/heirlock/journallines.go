package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/heirlock/heirlock/journal"
)

// cutter cuts chunks into lines. It holds the beginning of one line, and of that no more than the bound.
type cutter struct {
	most int
	part []byte // of a line that has not ended yet
	over bool   // and that is too long
}

// next takes a line off the chunk; done is false if the chunk ends within it. The text is valid until the next call; that
// of a line that is too long says nothing.
func (c *cutter) next(chunk []byte) (text []byte, over bool, rest []byte, done bool) {
	i := bytes.IndexByte(chunk, '\n')
	if i >= 0 && len(c.part) == 0 && !c.over {
		if i > c.most {
			return nil, true, chunk[i+1:], true
		}
		return chunk[:i], false, chunk[i+1:], true
	}
	piece := chunk
	if i >= 0 {
		piece = chunk[:i]
	}
	if c.over = c.over || len(c.part)+len(piece) > c.most; !c.over {
		c.part = append(c.part, piece...)
	}
	if i < 0 {
		return nil, false, nil, false
	}
	text, over = c.end()
	return text, over, chunk[i+1:], true
}

// end ends the line that has not ended yet.
func (c *cutter) end() (text []byte, over bool) {
	text, over = c.part, c.over
	c.part, c.over = c.part[:0], false
	return text, over
}

func (c *cutter) within() bool { return len(c.part) > 0 || c.over }

// intake submits lines.
type intake struct {
	sink   *sink
	words  *words
	cutter cutter
	raw    bool // any line is an event
	line   int64
	blank  uint64 // lines that were refused before they came to the journal
	over   uint64
}

// take takes lines until the input ends, a signal comes or the journal fails. The error is that of reading.
func (in *intake) take(chunks <-chan chunk) error {
	for {
		select {
		case <-in.words.ends.noticed:
			return in.interrupted(chunks)
		case <-in.words.failed:
			return nil
		case c := <-chunks:
			if over, err := in.chunk(c); over {
				return err
			}
		}
	}
}

// interrupted takes what has been read already. What is left of a line that has not ended is none.
func (in *intake) interrupted(chunks <-chan chunk) error {
	for more := true; more; {
		select {
		case c, ok := <-chunks:
			if more = ok; !ok {
				break
			}
			if over, err := in.chunk(c); over {
				return err
			}
		case <-time.After(readPatience):
			in.words.say("standard input: a read goes on; what it brings is dropped")
			more = false
		}
	}
	if in.cutter.within() {
		in.words.say("line %d dropped: it had not ended", in.line+1)
	}
	return nil
}

// chunk takes the lines of a chunk, and reports whether it is over. The end of the input ends a line.
func (in *intake) chunk(c chunk) (over bool, err error) {
	if c.err != nil {
		if in.cutter.within() {
			in.one(in.cutter.end())
		}
		if c.err == io.EOF {
			return true, nil
		}
		return true, c.err
	}
	for rest := c.bytes; len(rest) > 0; {
		text, long, behind, done := in.cutter.next(rest)
		if done && !in.one(text, long) {
			return true, nil
		}
		rest = behind
	}
	return false, nil
}

// one submits one line, and reports whether the journal goes on.
func (in *intake) one(text []byte, over bool) bool {
	in.line++
	switch {
	case over:
		in.over++
		in.words.say("line %d refused: %v: over %d bytes", in.line, journal.ErrOversized, in.cutter.most)
		return true
	case !in.raw && isBlank(text):
		in.blank++
		in.words.say("line %d refused: %v: it is blank", in.line, journal.ErrInvalid)
		return true
	}
	err := in.sink.submit(text)
	if err == nil {
		return true
	}
	if errors.Is(err, journal.ErrFailed) {
		return false
	}
	in.words.say("line %d refused: %s", in.line, whyRefused(err))
	return true
}

// whyRefused is the reason, and its cause without the words of the layers in between.
func whyRefused(err error) string {
	refused, ok := errors.AsType[*journal.RefusedError](err)
	if !ok {
		return err.Error()
	}
	cause := refused.Cause
	if semantic, ok := errors.AsType[*json.SemanticError](cause); ok && semantic.Err != nil {
		cause = semantic.Err
	}
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](cause); ok { // its offset is that among all the events
		cause = &jsontext.SyntacticError{JSONPointer: syntactic.JSONPointer, Err: syntactic.Err}
	}
	if cause == nil {
		return refused.Reason.Error()
	}
	return fmt.Sprintf("%v: %v", refused.Reason, cause)
}

// isBlank: JSON has no other blanks. Most lines are told by their first byte.
func isBlank(line []byte) bool {
	return len(line) == 0 || line[0] <= ' ' && len(bytes.TrimLeft(line, " \t\r")) == 0
}

// rawEvent is the event that is made of any line.
type rawEvent struct {
	Line        string `json:"line"`
	InvalidUTF8 bool   `json:"invalidUtf8,omitzero"`
}

// newRawEvent puts U+FFFD in the place of each byte that is not UTF-8.
func newRawEvent(line []byte) rawEvent {
	if utf8.Valid(line) {
		return rawEvent{Line: string(line)}
	}
	return rawEvent{string([]rune(string(line))), true}
}

// status is that of the journal, with the lines that did not come to it.
func (in *intake) status() journal.Status {
	st := in.sink.status()
	st.Received += in.blank + in.over
	st.Refused += in.blank + in.over
	st.RefusalsByReason.Invalid += in.blank
	st.RefusalsByReason.Oversized += in.over
	return st
}
