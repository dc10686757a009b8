package main

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Wherever the chunks end, the lines are those of the text, the long ones are found, and no more than the bound is held.
func TestCutter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 5
		text := []byte(rapid.StringOfN(rapid.SampledFrom([]rune("ab\n")), 0, 40, -1).Draw(t, "text"))
		var want, got []string
		for line := range bytes.Lines(text) {
			if line = bytes.TrimSuffix(line, []byte{'\n'}); len(line) > most {
				line = []byte("too long")
			}
			want = append(want, string(line))
		}
		c := cutter{most: most}
		take := func(line []byte, over bool) {
			if over {
				line = []byte("too long")
			}
			got = append(got, string(line))
		}
		for rest := text; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "chunk")
			for chunk := rest[:n]; len(chunk) > 0; {
				line, over, behind, done := c.next(chunk)
				if chunk = behind; done {
					take(line, over)
				}
				if len(c.part) > most {
					t.Fatalf("%d bytes held", len(c.part))
				}
			}
			rest = rest[n:]
		}
		if c.within() {
			take(c.end())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	})
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		text  string
		bytes int64 // 0 for an error
		shown string
	}{
		{"4096", 4096, "4KiB"}, {"1", 1, "1"}, {"7B", 7, "7"}, {"64KiB", 64 << 10, "64KiB"}, {"16MiB", 16 << 20, "16MiB"},
		{"3GiB", 3 << 30, "3GiB"}, {"2TiB", 2 << 40, "2TiB"}, {"10kB", 10000, "10000"}, {"1MB", 1e6, "1000000"},
		{"2GB", 2e9, "1953125KiB"}, {"1TB", 1e12, "976562500KiB"}, {"8388607TiB", 8388607 << 40, "8388607TiB"},
		{text: "8388608TiB"}, {text: "9223372036854775808"}, {text: "0"}, {text: "0KiB"}, {text: ""}, {text: "KiB"}, {text: "-1"},
		{text: "+1"}, {text: "1.5MiB"}, {text: "1 MiB"}, {text: "1mib"}, {text: "1K"}, {text: "0x10"}, {text: "1_000"},
	} {
		var s sizeValue
		err := s.Set(c.text)
		if (err == nil) != (c.bytes > 0) || int64(s) != c.bytes || err == nil && s.String() != c.shown {
			t.Errorf("%q: %d bytes, shown as %q, %v; want %d as %q", c.text, int64(s), s.String(), err, c.bytes, c.shown)
		}
	}
}
