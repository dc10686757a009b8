package journal

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// A string is quoted as package jsontext quotes it, or refused as it refuses it.
func FuzzQuote(f *testing.F) {
	for c := range 256 { // each byte in each place of eight, and behind the last eight
		for at := range 9 {
			f.Add(strings.Repeat("x", at) + string([]byte{byte(c)}) + "yyyyyyyy" + strings.Repeat("z", at))
		}
	}
	for _, s := range []string{"", "\u2028<&>\u00e9", "\U0001F600 and more", "12345678\xed\xa0\x80", "\ufffd", "\xc3", "\x1f\x20\x21\x22\x23\x5b\x5c\x5d", "!!!!\"\"\"\"", "\x00\x01\x02\x03\x04\x05\x06\x07\x08"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, err := jsontext.AppendQuote([]byte("before"), s)
		got, ok := appendQuoted([]byte("before"), s)
		if ok != (err == nil) || ok && string(got) != string(want) {
			t.Errorf("%q became %s (%v), want %s (%v)", s, got, ok, want, err)
		}
	})
}
