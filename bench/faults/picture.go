package main

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// The picture: a grid of one coloured cell for each case. The colours carry their word as text too, are readable on a
// light and on a dark page, and the words do not depend on them.

const (
	cellWidth  = 34
	cellHeight = 20
	leftWidth  = 236
	topHeight  = 150
	legendRoom = 46
)

var colours = []struct{ word, fill, letter string }{
	{recovers, "#1f883d", "R"},
	{refuses, "#2f6fb5", "F"},
	{leaves, "#2f6fb5", "L"},
	{takes, "#6e7681", "T"},
	{wedges, "#b36b00", "W"},
	{double, "#d0342c", "2"},
	{cannot, "#6e7681", "E"},
	{harms, "#a1239b", "H"},
	{notRun, "none", "·"},
	{absent, "none", "–"},
}

func look(word string) (fill, letter string) {
	for _, c := range colours {
		if c.word == word {
			return c.fill, c.letter
		}
	}
	return "none", "?"
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

func (t *table) picture() string {
	var columns []*locker
	for _, l := range t.columns {
		if l.missing == "" {
			columns = append(columns, l)
		}
	}
	width, height := leftWidth+cellWidth*len(columns)+60, topHeight+cellHeight*len(t.rows)+legendRoom
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="system-ui, sans-serif" font-size="12" role="img">`+"\n", width, height, width, height)
	b.WriteString("<title>Fault matrix of heirlock and its rivals</title>\n<style>\n.b { fill: #fff }\n.t { fill: #1f2328 }\n.o { font-weight: bold }\n.c { fill: #fff; font-weight: bold; text-anchor: middle }\n" +
		".n { fill: #8a8f98; text-anchor: middle }\n.g { stroke: #8a8f98; stroke-opacity: .35 }\n@media (prefers-color-scheme: dark) { .b { fill: #0d1117 } .t { fill: #e6edf3 } }\n</style>\n")
	fmt.Fprintf(&b, `<rect class="b" width="%d" height="%d" rx="6"/>`+"\n", width, height) // a page may be dark where its reader's system is not
	for i, l := range columns {
		x := leftWidth + cellWidth*i + cellWidth/2
		fmt.Fprintf(&b, `<text class="t%s" transform="translate(%d %d) rotate(-50)">%s</text>`+"\n", bold(l.ours()), x+4, topHeight-8, escaped(l.name))
	}
	for i := range t.rows {
		y := topHeight + cellHeight*i
		fmt.Fprintf(&b, `<text class="t" x="%d" y="%d" text-anchor="end">%s</text>`+"\n", leftWidth-8, y+14, escaped(t.rows[i].title))
		for j, l := range columns {
			t.drawCell(&b, &t.rows[i], l, leftWidth+cellWidth*j, y)
		}
	}
	drawLegend(&b, topHeight+cellHeight*len(t.rows)+24)
	b.WriteString("</svg>\n")
	return b.String()
}

func bold(ours bool) string {
	if ours {
		return " o"
	}
	return ""
}

func (t *table) drawCell(b *strings.Builder, sc *scenario, l *locker, x, y int) {
	c := t.at(sc, l)
	fill, letter := look(c.Word)
	class := "c"
	if fill == "none" {
		class = "n"
	}
	said := fmt.Sprintf("%s, %s: %s", l.name, sc.title, c.outcome)
	if c.Note != "" {
		said += " (" + c.Note + ")"
	}
	fmt.Fprintf(b, `<g><title>%s</title><rect class="g" x="%d" y="%d" width="%d" height="%d" rx="3" fill="%s"/><text class="%s" x="%d" y="%d">%s</text></g>`+"\n",
		escaped(said), x+1, y+1, cellWidth-2, cellHeight-2, fill, class, x+cellWidth/2, y+14, letter)
}

func drawLegend(b *strings.Builder, y int) {
	x := 12
	for _, c := range colours {
		if c.fill == "none" {
			continue
		}
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="18" height="16" rx="3" fill="%s"/><text class="c" x="%d" y="%d">%s</text><text class="t" x="%d" y="%d">%s</text>`+"\n",
			x, y, c.fill, x+9, y+12, c.letter, x+24, y+12, escaped(c.word))
		x += 44 + 8*len(c.word)
	}
}
