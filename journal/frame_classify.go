package journal

import (
	"bytes"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// reason is why a line is no frame, or none that the caller wants; zero is a good frame. They are looked for in this
// order.
type reason uint8

const (
	sound reason = iota
	oversizedLine
	nulByte
	invalidUTF8
	invalidJSON
	unterminatedLine // invalid JSON without a line feed, or a frame that lacks nothing but that
	invalidFrame
	invalidEvent
	reasons
)

var reasonNames = [reasons]string{
	"", "oversized-line", "nul-byte", "invalid-utf8", "invalid-json", "unterminated-line", "invalid-frame", "invalid-event",
}

// lenient: what RFC 7493 forbids and RFC 8259 allows is data. It lets pass raw bytes that are not UTF-8, which are looked
// for apart. usual does not, and so is enough for a line that it likes; it dislikes lone surrogates, which nobody writes.
var (
	lenient = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
	usual   = []jsontext.Options{jsontext.AllowDuplicateNames(true)}
)

// classify decides what a line without its line feed is. It is exact and slow: sound readers take writtenFrame first.
func classify(line []byte, terminated bool, maxLine int) (frame, reason) {
	switch {
	case len(line) > maxLine:
		return frame{}, oversizedLine
	case bytes.IndexByte(line, 0) >= 0:
		return frame{}, nulByte
	case !utf8.Valid(line):
		return frame{}, invalidUTF8
	}
	f, why := parseFrame(line)
	if why == invalidJSON && !terminated {
		why = unterminatedLine
	}
	return f, why
}

// members are the four names of a frame, by their place in parseFrame.
var members = [...]string{"schemaVersion", "epoch", "sequence", "event"}

// parseFrame takes any line of UTF-8 apart. The braces, colons and commas of the object are read here and each value by
// itself, so that an event may be as deep as one that is read alone, and the rest of a line that is no frame is still
// checked: it may be no JSON.
func parseFrame(line []byte) (frame, reason) {
	s := scanner{text: line}
	if !s.take('{') {
		if s.value() != nil && s.ended() {
			return frame{}, invalidFrame // JSON, but no object
		}
		return frame{}, invalidJSON
	}
	var found [len(members)][]byte
	foreign := false
	for more := !s.take('}'); more; {
		if !s.at('"') {
			return frame{}, invalidJSON
		}
		name := s.value()
		if name == nil || !s.take(':') {
			return frame{}, invalidJSON
		}
		value := s.value()
		if value == nil {
			return frame{}, invalidJSON
		}
		if i := member(name); i < 0 || found[i] != nil {
			foreign = true
		} else {
			found[i] = value
		}
		if more = s.take(','); !more && !s.take('}') {
			return frame{}, invalidJSON
		}
	}
	if !s.ended() {
		return frame{}, invalidJSON
	}
	f, ok := frameOf(found)
	if !ok || foreign {
		return frame{}, invalidFrame
	}
	return f, sound
}

// frameOf makes a frame of the values of its members; nil is a missing one.
func frameOf(found [len(members)][]byte) (f frame, ok bool) {
	if found[3] == nil || string(found[0]) != "1" || len(found[1]) == 0 || found[1][0] != '"' {
		return f, false
	}
	text := unquoted(found[1], epochLength)
	if f.sequence, ok = parseSequence(found[2]); !ok || !isEpoch(text) {
		return f, false
	}
	f.epoch, f.event = epochID(text), found[3]
	return f, true
}

// member is the place of a quoted name in members, or -1.
func member(quoted []byte) int {
	text := unquoted(quoted, len(members[0]))
	for i, name := range members {
		if string(text) == name {
			return i
		}
	}
	return -1
}

// unquoted is the text of a JSON string, or nil if that is surely longer than most bytes.
func unquoted(quoted []byte, most int) []byte {
	const longest = 6 // bytes of an escape for one byte of text
	if len(quoted) > most*longest+2 {
		return nil
	}
	text, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		return nil // a lone surrogate: no text of a frame has one
	}
	return text
}

// scanner reads JSON values and what stands between them.
type scanner struct {
	text []byte
	dec  *jsontext.Decoder
}

// at skips blanks and reports whether this byte follows.
func (s *scanner) at(c byte) bool {
	for len(s.text) > 0 && (s.text[0] == ' ' || s.text[0] == '\t' || s.text[0] == '\r' || s.text[0] == '\n') {
		s.text = s.text[1:]
	}
	return len(s.text) > 0 && s.text[0] == c
}

func (s *scanner) take(c byte) bool {
	if !s.at(c) {
		return false
	}
	s.text = s.text[1:]
	return true
}

func (s *scanner) ended() bool { s.at(0); return len(s.text) == 0 }

// value reads one JSON value, or returns nil if there is none.
func (s *scanner) value() []byte {
	s.at(0)
	rest := bytes.NewBuffer(s.text) // which the decoder reads in place
	if s.dec == nil {
		s.dec = jsontext.NewDecoder(rest, lenient...)
	} else {
		s.dec.Reset(rest, lenient...)
	}
	v, err := s.dec.ReadValue()
	if err != nil {
		return nil
	}
	s.text = s.text[s.dec.InputOffset():]
	return v
}
