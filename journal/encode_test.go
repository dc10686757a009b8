package journal

import (
	"bytes"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Whatever the bytes of an event, it is refused, or it is one line: strict JSON, without blanks, and the same value.
func FuzzEncode(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1,"a":2}`, " [1 ,\n2]\r\n", `"` + "\xff" + `"`, `"\ud800"`, "\"a\x00\"", `1e999`, `-0`, "{\"a\":\t{\"b\" : [ ] } }", `null null`,
		`"<&>\u2028"`, "\ufeff1", `[[[[[[[[]]]]]]]]`, ``, `tru`, `"` + "\u2028" + `"`,
	} {
		f.Add([]byte(seed), 100)
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, data []byte, most int) {
		most = max(1, most%1000)
		values, texts := newEncoder[jsontext.Value](most), newEncoder[string](most)
		want := jsontext.Value(bytes.Clone(data))
		err := want.Format() // without escapes that are not needed
		valid := err == nil && want.IsValid() && len(data) > 0
		text, reason, cause := values.encode(data, nil)
		switch {
		case reason == nil && !(valid && bytes.Equal(text, want) && len(text) <= most && !bytes.Contains(text, []byte("\n"))):
			t.Errorf("%q became %q, want %q (%v)", data, text, want, err)
		case reason == ErrInvalid && (valid || cause == nil) && len(data) > 0:
			t.Errorf("%q: %v, but it is valid", data, cause)
		case reason == ErrOversized && valid && len(want) <= most:
			t.Errorf("%q: oversized with %d bytes of %d", data, len(want), most)
		}
		if reason == nil { // it is used again after a success
			if again, reason, cause := values.encode(data, nil); reason != nil || !bytes.Equal(again, want) {
				t.Errorf("%q became %q the second time (%v)", data, again, cause)
			}
		}
		var back string
		text, reason, _ = texts.encode(string(data), nil)
		switch {
		case reason == nil && (!utf8.Valid(data) || len(text) > most || json.Unmarshal(text, &back) != nil || back != string(data)):
			t.Errorf("%q became %q", data, text)
		case reason != nil && errors.Is(reason, ErrInvalid) == utf8.Valid(data) && len(data)+2 <= most/6:
			t.Errorf("%q: %v", data, reason)
		}
	})
}

// The offset in a cause is that of the event, however many were encoded before it.
func TestOffsetIsWithinTheEvent(t *testing.T) {
	bad := jsontext.Value(`{"a":1,"b":nul}`)
	fresh, used := newEncoder[jsontext.Value](100), newEncoder[jsontext.Value](100)
	_, _, want := fresh.encode(bad, nil)
	for range 3 {
		if _, reason, cause := used.encode(jsontext.Value(`"before"`), nil); reason != nil {
			t.Fatal(reason, cause)
		}
	}
	_, reason, got := used.encode(bad, nil)
	if reason != ErrInvalid || want == nil || got == nil || got.Error() != want.Error() {
		t.Errorf("%v, %v, want %v", reason, got, want)
	}
	var syntax *jsontext.SyntacticError
	if !errors.As(got, &syntax) || syntax.ByteOffset >= int64(len(bad)) {
		t.Errorf("offset of %v is not within the event", got)
	}
}

// A large event that package json has to write is not held a second time in what was tried before.
func TestLargeEventIsHeldOnce(t *testing.T) {
	large := bytes.Repeat([]byte{'1'}, 2*enoughBytes)
	values, texts := newEncoder[jsontext.Value](1<<20), newEncoder[[]string](1<<20)
	for range 2 {
		for _, event := range []string{string(large), string(large) + " "} { // the second is not plain
			if got, reason, cause := values.encode(jsontext.Value(event), nil); reason != nil || !bytes.Equal(got, large) {
				t.Fatalf("%d bytes, %v, %v", len(got), reason, cause)
			}
		}
		if values.text != nil {
			t.Errorf("%d bytes are kept", cap(values.text))
		}
		if _, reason, _ := texts.encode([]string{string(large), "\xff"}, nil); reason != ErrInvalid || texts.text != nil {
			t.Errorf("%v, %d bytes are kept", reason, cap(texts.text))
		}
		texts = newEncoder[[]string](1 << 20) // as after every failure
	}
}
