package journal

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/go-json-experiment/json/jsontext"
)

// frameBytes says beforehand how long a frame will be.
func TestFrameBytes(t *testing.T) {
	for _, sequence := range []uint64{1, 9, 10, 99, 100, 12345678, maxSequence} {
		for _, event := range []string{"1", `{"a":"b"}`} {
			if got, want := frameBytes(sequence, len(event)), len(frameText(epochA, sequence, event)); got != want {
				t.Errorf("frame %d with %s: %d bytes, is %d", sequence, event, got, want)
			}
		}
	}
}

// with makes a line of a frame whose members are given as text.
func with(version, epoch, sequence, event string) string {
	return `{"schemaVersion":` + version + `,"epoch":` + epoch + `,"sequence":` + sequence + `,"event":` + event + `}`
}

// classified are lines, and what they are.
var classified = []struct {
	line string
	want reason
}{
	{with("1", `"`+epochA+`"`, "1", "null"), sound},
	{with("1", `"`+strings.ToUpper(epochA)+`"`, "9007199254740991", "0"), sound},
	{with(" 1 ", `"`+epochA+`"`, "1 ", ` {"a":1,"a":{}} `), sound},
	{with("1", `"`+epochA+`"`, "1", `"\ud800"`), sound},
	{with("1", `"`+epochA+`"`, "1", strings.Repeat("[", 10000)+strings.Repeat("]", 10000)), sound},
	{with("1", `"`+epochA+`"`, "1", strings.Repeat("[", 10001)+strings.Repeat("]", 10001)), invalidJSON},
	{"\t" + with("1", `"`+epochA+`"`, "1", "0") + "\r", sound},
	{`{"event":{"sequence":3},"sequence":2,"epoch":"` + epochA + `","schemaVersion":1}`, sound},
	{`{"\u0065vent":0,"sequence":2,"epoch":"\u0030` + epochA[1:] + `","schema\u0056ersion":1}`, sound},

	{with("1", `"`+epochA+`"`, "1", "\"\xff\""), invalidUTF8},
	{with("1", `"`+epochA+`"`, "1", "\"\xed\xa0\x80\""), invalidUTF8}, // a surrogate that is no escape
	{with("1", `"`+epochA+`"`, "1", "{\"\xc0\x80\":1}"), invalidUTF8},
	{with("1", `"`+epochA+`"`, "1", "\"\x00\""), nulByte},
	{with("1", `"`+epochA+`"`, "1", "1\x00"), nulByte},

	{"", invalidJSON},
	{"{", invalidJSON},
	{"{}{}", invalidJSON},
	{`{"a" 1}`, invalidJSON},
	{`{"a":1,}`, invalidJSON},
	{`{1:1}`, invalidJSON},
	{`{"a":1 "b":2}`, invalidJSON},
	{"\ufeff{}", invalidJSON},
	{"nul", invalidJSON},
	{`{"sequence":01}`, invalidJSON},
	{with("1", `"`+epochA+`"`, "1", "0") + "}", invalidJSON},
	{with("1", `"`+epochA+`"`, "1", "0") + with("1", `"`+epochA+`"`, "2", "0"), invalidJSON},
	{with("1", `"`+epochA+`"`, "1", "0,"), invalidJSON},
	{with("1", `"`+epochA+`"`, "1", ""), invalidJSON},
	{with("1", `"`+epochA+`"`, "1", `"\x"`), invalidJSON},
	{with("1", `"`+epochA+`"`, "1", "\"\x01\""), invalidJSON},
	{with("1", `"`+epochA+`"`, "01", "0"), invalidJSON},
	{with("1", `"`+epochA, "1", "0"), invalidJSON},

	{"{}", invalidFrame},
	{"null", invalidFrame},
	{"[1]", invalidFrame},
	{`"{}"`, invalidFrame},
	{"12 ", invalidFrame},
	{with("2", `"`+epochA+`"`, "1", "0"), invalidFrame},
	{with("1.0", `"`+epochA+`"`, "1", "0"), invalidFrame},
	{with(`"1"`, `"`+epochA+`"`, "1", "0"), invalidFrame},
	{with("1", "7", "1", "0"), invalidFrame},
	{with("1", `""`, "1", "0"), invalidFrame},
	{with("1", `"`+epochA+`0"`, "1", "0"), invalidFrame},
	{with("1", `"g`+epochA[1:]+`"`, "1", "0"), invalidFrame},
	{with("1", `"`+strings.ReplaceAll(epochA, "-", "0")+`"`, "1", "0"), invalidFrame},
	{with("1", `"-`+epochA[1:]+`"`, "1", "0"), invalidFrame},
	{with("1", `"`+epochA[:8]+"_"+epochA[9:]+`"`, "1", "0"), invalidFrame},
	{with("1", `"`+epochA[:13]+"_"+epochA[14:]+`"`, "1", "0"), invalidFrame},
	{with("1", `"`+epochA[:18]+"_"+epochA[19:]+`"`, "1", "0"), invalidFrame},
	{with("1", `"`+epochA[:23]+"_"+epochA[24:]+`"`, "1", "0"), invalidFrame},
	{with("1", `"`+epochA+`"`, "0", "0"), invalidFrame},
	{with("1", `"`+epochA+`"`, "-1", "0"), invalidFrame},
	{with("1", `"`+epochA+`"`, "1.0", "0"), invalidFrame},
	{with("1", `"`+epochA+`"`, "1e3", "0"), invalidFrame},
	{with("1", `"`+epochA+`"`, "9007199254740992", "0"), invalidFrame},
	{with("1", `"`+epochA+`"`, "18446744073709551617", "0"), invalidFrame},
	{with("1", `"`+epochA+`"`, `"1"`, "0"), invalidFrame},
	{with("1", `"`+epochA+`"`, "1", `0,"event":0`), invalidFrame},
	{with("1", `"`+epochA+`"`, "1", `0,"\u0065vent":0`), invalidFrame},
	{with("1", `"`+epochA+`"`, "1", `0,"more":0`), invalidFrame},
	{with("1", `"`+epochA+`"`, "1", `0,"\ud800":0`), invalidFrame},
	{`{"schemaVersion":1,"epoch":"` + epochA + `","sequence":1}`, invalidFrame},
	{`{"schemaVersion":1,"Epoch":"` + epochA + `","sequence":1,"event":0}`, invalidFrame},
	{`{"` + strings.Repeat("event", 99) + `":1}`, invalidFrame},
}

func TestClassify(t *testing.T) {
	for _, c := range classified {
		if _, got := classify([]byte(c.line), true, 1<<20); got != c.want {
			t.Errorf("%.99q: %s, want %s", c.line, reasonNames[got], reasonNames[c.want])
		}
		want := c.want
		if want == invalidJSON {
			want = unterminatedLine
		}
		if _, got := classify([]byte(c.line), false, 1<<20); got != want {
			t.Errorf("%.99q without a line feed: %s, want %s", c.line, reasonNames[got], reasonNames[want])
		}
		sameBothWays(t, []byte(c.line))
	}
}

// A line has the first of its faults.
func TestPrecedence(t *testing.T) {
	line := "{\x00\xff" + strings.Repeat(" ", 30)
	for _, c := range []struct {
		line string
		want reason
	}{{line, oversizedLine}, {line[:20], nulByte}, {"{\xff", invalidUTF8}, {"\xff", invalidUTF8}, {"[", invalidJSON}, {"[]", invalidFrame}} {
		if _, got := classify([]byte(c.line), true, 20); got != c.want {
			t.Errorf("%q: %s, want %s", c.line, reasonNames[got], reasonNames[c.want])
		}
	}
}

// sameBothWays checks that the fast way takes nothing that the exact one does not, says the same about what it takes,
// and takes every sound line that has the head and no lone surrogate.
func sameBothWays(t interface{ Errorf(string, ...any) }, line []byte) {
	exact, why := classify(line, true, 1<<20)
	fast, ok := writtenFrame(line)
	ok = ok && jsontext.Value(fast.event).IsValid(usual...)
	switch {
	case ok && (why != sound || fast.epoch != exact.epoch || fast.sequence != exact.sequence || string(fast.event) != string(exact.event)):
		t.Errorf("%q: the fast way says %s %d %s, the exact one %s %s %d %s", line, fast.epoch, fast.sequence, fast.event, reasonNames[why], exact.epoch, exact.sequence, exact.event)
	case !ok && why == sound && strings.HasPrefix(string(line), frameStart) && line[len(line)-1] == '}':
		head := appendFrameHead(nil, string(exact.epoch[:]), exact.sequence)
		if strings.HasPrefix(string(line), string(head)) && jsontext.Value(exact.event).IsValid(usual...) {
			t.Errorf("%q: the fast way does not take it", line)
		}
	}
}

// Frames that were changed a little are the same both ways.
func TestBothWaysAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := []byte(rapid.SampledFrom(classified).Draw(t, "line").line)
		if len(line) > 1000 {
			return
		}
		bytes := rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("{}[]:,\"\\0123456789eventsqu \t\r\x00\xff-.")))
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			at := rapid.IntRange(0, len(line)).Draw(t, "at")
			if cut := rapid.IntRange(0, 2).Draw(t, "cut"); at+cut <= len(line) {
				line = append(line[:at:at], line[at+cut:]...)
			}
			if rapid.Bool().Draw(t, "insert") {
				line = append(line[:at:at], append([]byte{bytes.Draw(t, "byte")}, line[at:]...)...)
			}
		}
		sameBothWays(t, line)
	})
}

// appendFrameHead appends a frame up to its event.
func appendFrameHead(dst []byte, epoch string, sequence uint64) []byte {
	return appendSequence(appendFrameStart(dst, epoch), sequence)
}
