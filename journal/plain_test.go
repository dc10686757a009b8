package journal

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// written is what package json writes of JSON text, or nil if it refuses it.
func written(text []byte) []byte {
	var b bytes.Buffer
	if jsontext.NewEncoder(&b, strict).WriteValue(text) != nil {
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Text that is plain is what package json takes, and writes as it is; and what package json writes is plain, but for a few
// things that hardly anybody writes.
func FuzzPlain(f *testing.F) {
	for c := range 256 { // each byte in a string, in a place of eight and behind the last eight
		for _, at := range []int{0, 5, 8, 11} {
			f.Add([]byte(`"` + strings.Repeat("x", at) + string([]byte{byte(c)}) + strings.Repeat("y", 12-at) + `"`))
			f.Add([]byte(`"` + strings.Repeat("x", at) + `\` + string([]byte{byte(c)}) + strings.Repeat("y", 12-at) + `"`))
		}
		f.Add([]byte{byte(c)})
		f.Add([]byte{'1', byte(c), '2'})
		f.Add([]byte{'[', '1', byte(c), '2', ']'})
		f.Add([]byte{'{', '"', 'a', '"', byte(c), '2', '}'})
		f.Add([]byte{'{', '"', 'a', '"', ':', '2', byte(c), '}'})
	}
	for _, s := range []string{
		``, `{}`, `[]`, `{"a":1}`, `{"a":1,"b":{"a":[1,{"a":2,"c":null}]}}`, `{"a":1,"a":2}`, `{"a":{"b":1},"b":2,"a":3}`, `{"a":[{"b":1,"b":1}]}`, `[{"a":1},{"a":1}]`,
		`{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{1:2}`, `[,]`, `[1,]`, `[1`, `{"a":1`, `{"a`, `"`, `"\`, `"\"`, `{"a":1}}`, `[1]]`, `1 `, ` 1`, `{ }`, `[1, 2]`, "[1\n]",
		`0`, `-0`, `-`, `01`, `-01`, `1.`, `.5`, `1.5`, `-1.50`, `1e5`, `1E+05`, `1e-`, `1e`, `1.e1`, `1e999`, `123456789012345678901234567890`, `0x1`, `1_0`, `+1`, `0e0`, `--1`,
		`true`, `tru`, `truex`, `false`, `null`, `nul`, `True`, `[true,false,null]`, `"\u0041"`, `"\u001f"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\/"`, `"a\nb\"c\\"`, "\"\xff\"", "\"\xed\xa0\x80\"",
		"\"\u00e9\u2028\U0001F600\ufffd\"", "\"12345678\xc3\"", "{\"\u00e9\":1,\"\u00e9\":2}", "\ufeff1", "1\x00", "\"\x00\"", "\"\x7f\"", `{"a\n":1,"a\n":2}`, `{"a":1,"\u0061":2}`, `{"":1,"":2}`,
		strings.Repeat("[", 100) + strings.Repeat("]", 100), strings.Repeat("[", 101) + strings.Repeat("]", 101), object(plainNames), object(plainNames + 1),
	} {
		f.Add([]byte(s))
	}
	var p plain
	f.Fuzz(func(t *testing.T, text []byte) {
		same := len(text) > 0 && bytes.Equal(written(text), text)
		rare := bytes.Contains(text, []byte(`\u`)) || bytes.Count(text, []byte(`":`)) > plainNames || bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > plainDepth
		if got := p.isPlain(text, true); got && !same || same && !got && !rare {
			t.Errorf("%q is plain: %v; package json writes %q", text, got, written(text))
		}
		if got, valid := p.isPlain(text, false), jsontext.Value(text).IsValid(usual...); got && !valid {
			t.Errorf("%q is plain with names that repeat, but no JSON", text)
		} else if same && !got && !rare {
			t.Errorf("%q is not plain with names that repeat", text)
		}
	})
}

// object is one with so many names.
func object(names int) string {
	var b strings.Builder
	for i := range names {
		fmt.Fprintf(&b, `,"%d":%d`, i, i)
	}
	return "{" + b.String()[1:] + "}"
}

// What is not looked at is left to package json: more names than are compared, and more levels than are descended.
func TestPlainBounds(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	var p plain
	for text, want := range map[string]bool{
		object(plainNames): true, object(plainNames + 1): false, nested(plainDepth): true, nested(plainDepth + 1): false, `"\u001f"`: false,
		"[" + object(plainNames) + "," + object(plainNames) + "]": true,
	} {
		if got := p.isPlain([]byte(text), true); got != want {
			t.Errorf("%s is plain: %v, want %v", text, got, want)
		}
	}
}
