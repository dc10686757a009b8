package journal

import (
	"math/bits"
	"unicode/utf8"
)

// plain looks at JSON text that is as package json writes it: without blanks, and with no escape in a string that need not
// be. Nearly all events that come as text are that, and nearly all that lie in a file. It says yes only of a value to which
// package json would say yes, and which it would write as the same bytes; to anything else it says no, and package json has
// the word. The fuzz test FuzzPlain holds the two against each other.
type plain struct {
	text   []byte
	unique bool     // no object has a name twice
	high   uint64   // has the highest bit of a byte that is not ASCII
	names  [][]byte // quoted, of the objects that the value lies in; used again
}

const (
	plainDepth = 100
	plainNames = 32 // of one object, which are compared each with each
)

// isPlain reports whether the text is one such value.
func (p *plain) isPlain(text []byte, unique bool) bool {
	p.text, p.unique, p.high, p.names = text, unique, 0, p.names[:0]
	return p.value(0, 0) == len(text) && (p.high&highs == 0 || utf8.Valid(text))
}

// value is where the value ends that begins there, or -1.
func (p *plain) value(i, depth int) int {
	switch p.at(i) {
	case '{', '[':
		if depth == plainDepth {
			return -1
		} else if p.text[i] == '{' {
			return p.object(i+1, depth+1)
		}
		return p.array(i+1, depth+1)
	case '"':
		return p.quoted(i + 1)
	case 't':
		return p.literal(i, "true")
	case 'f':
		return p.literal(i, "false")
	case 'n':
		return p.literal(i, "null")
	}
	return p.number(i)
}

// at is the byte there, or 0, which is none of JSON.
func (p *plain) at(i int) byte {
	if uint(i) < uint(len(p.text)) {
		return p.text[i]
	}
	return 0
}

func (p *plain) literal(i int, word string) int {
	if end := i + len(word); end <= len(p.text) && string(p.text[i:end]) == word {
		return end
	}
	return -1
}

func (p *plain) object(i, depth int) int {
	if p.at(i) == '}' {
		return i + 1
	}
	outer := len(p.names)
	for {
		if p.at(i) != '"' {
			return -1
		}
		end := p.quoted(i + 1)
		if p.at(end) != ':' || p.unique && !p.name(p.text[i:end], outer) {
			return -1
		}
		end = p.value(end+1, depth)
		switch p.at(end) {
		case ',':
			i = end + 1
			continue
		case '}':
			p.names = p.names[:outer]
			return end + 1
		}
		return -1
	}
}

// name reports whether the name is new to its object, whose names begin at outer. Equal names are equal bytes: there is one
// way to write each.
func (p *plain) name(quoted []byte, outer int) bool {
	object := p.names[outer:]
	if len(object) == plainNames {
		return false
	}
	for _, n := range object {
		if string(n) == string(quoted) {
			return false
		}
	}
	p.names = append(p.names, quoted)
	return true
}

func (p *plain) array(i, depth int) int {
	if p.at(i) == ']' {
		return i + 1
	}
	for {
		end := p.value(i, depth)
		switch p.at(end) {
		case ',':
			i = end + 1
			continue
		case ']':
			return end + 1
		}
		return -1
	}
}

// quoted is where the string ends whose quote is before i.
func (p *plain) quoted(i int) int {
	text := p.text
	for i < len(text) {
		if i+8 <= len(text) {
			x := eight(text[i : i+8])
			special := escaped(x)
			if special == 0 {
				p.high |= x
				i += 8
				continue
			}
			n := bits.TrailingZeros64(special) / 8
			p.high |= x & (1<<(8*n) - 1)
			i += n
		}
		switch c := text[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			if !isShortEscape(p.at(i + 1)) {
				return -1
			}
			i += 2
		case c < ' ':
			return -1
		default:
			p.high |= uint64(c)
			i++
		}
	}
	return -1
}

// isShortEscape reports whether a backslash and this byte are the only way to write a character.
func isShortEscape(c byte) bool {
	return c == 'n' || c == '"' || c == '\\' || c == 't' || c == 'r' || c == 'b' || c == 'f'
}

func (p *plain) number(i int) int {
	if p.at(i) == '-' {
		i++
	}
	if p.at(i) == '0' {
		i++
	} else if i = p.digits(i); i < 0 {
		return -1
	}
	if p.at(i) == '.' {
		if i = p.digits(i + 1); i < 0 {
			return -1
		}
	}
	if p.at(i)|0x20 == 'e' {
		if i++; p.at(i) == '+' || p.at(i) == '-' {
			i++
		}
		return p.digits(i)
	}
	return i
}

// digits is where the digits end, of which there is at least one.
func (p *plain) digits(i int) int {
	from := i
	for p.at(i)-'0' <= 9 {
		i++
	}
	if i == from {
		return -1
	}
	return i
}
