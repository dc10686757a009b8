package journal

import (
	"math/bits"
	"unicode/utf8"
)

// appendQuoted appends a string as jsontext.AppendQuote does, with the escapes that JSON demands and no other (RFC 8785,
// 3.2.2.2), or reports that it is no UTF-8. It looks at eight bytes at a time, and is there because nearly all of an event
// is strings.
func appendQuoted(b []byte, s string) (out []byte, ok bool) {
	b = append(b, '"')
	from, ascii := 0, true
	for i := 0; i < len(s); {
		if i+8 <= len(s) {
			x := eight(s[i : i+8])
			ascii = ascii && x&highs == 0
			special := escaped(x)
			if special == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(special) / 8
		}
		c := s[i]
		i++
		if ascii = ascii && c < utf8.RuneSelf; c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i-1]...)
		b = appendEscape(b, c)
		from = i
	}
	b = append(append(b, s[from:]...), '"')
	return b, ascii || utf8.ValidString(s)
}

const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// eight bytes in one number, the first lowest.
func eight[T string | []byte](s T) uint64 {
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// escaped sets the highest bit of the first of eight bytes that is a control character, a quote or a backslash, and of
// some bytes behind it; it is 0 if there is none. A byte below n borrows when n is taken from it, and so may the next.
func escaped(x uint64) uint64 {
	quote, backslash := x^'"'*ones, x^'\\'*ones // zero where it is one
	return ((x-' '*ones)&^x | (quote-ones)&^quote | (backslash-ones)&^backslash) & highs
}

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\b':
		return append(b, '\\', 'b')
	case '\f':
		return append(b, '\\', 'f')
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	const hex = "0123456789abcdef"
	return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}
