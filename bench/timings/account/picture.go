package account

import (
	"fmt"
	"math"
	"strings"
)

const (
	panelWidth, panelHeight = 330, 170 // of the plot
	plotLeft, plotTop       = 60, 34
	legendWidth             = 78
	columnWidth             = plotLeft + panelWidth + legendWidth
	rowHeight               = plotTop + panelHeight + 44
	ninesMost               = 4.0 // the axis ends at 99.99 %
)

// hues are the colours of the peers, the same in every panel; readable on a light and on a dark page.
var hues = map[string]string{
	"heirlock": "#d0342c",
	"flock":    "#1f883d", "gofrs": "#2f6fb5", "filemutex": "#b36b00", "bare": "#808891",
	"F": "#808891", "E": "#a1239b", "V": "#b36b00", "P": "#2f6fb5", "S": "#1f883d",
}

// picture draws for each measurement how many of the samples were done after so long. The axis of time is logarithmic, and
// that of the share gives as much room to each further nine: what is rare is what hurts.
func picture() string {
	var drawn []Section
	for _, s := range sections {
		if s.lines != nil {
			drawn = append(drawn, s)
		}
	}
	var b strings.Builder
	width, height := 2*columnWidth, (len(drawn)+1)/2*rowHeight
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="system-ui, sans-serif" font-size="12" role="img">`+"\n", width, height, width, height)
	b.WriteString("<title>How long locks and journals take, distributions</title>\n<style>.t { fill: #57606a } .g { stroke: #8a8f98; stroke-opacity: .35 } " +
		"@media (prefers-color-scheme: dark) { .t { fill: #c9d1d9 } }</style>\n")
	for i := range drawn {
		p := newPanel(&drawn[i], float64(i%2*columnWidth), float64(i/2*rowHeight))
		p.axes(&b)
		p.curves(&b)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// panel is the plot of one section.
type panel struct {
	*Section
	left, top        float64
	low, high, nines float64 // decades of time; nines of the share
}

func newPanel(s *Section, left, top float64) *panel {
	p := &panel{Section: s, left: left + plotLeft, top: top + plotTop, low: math.Inf(1), high: math.Inf(-1)}
	for _, l := range s.lines {
		p.nines = max(p.nines, last(l))
		p.low = min(p.low, math.Floor(math.Log10(max(l.Took.At(0), 1))))
		p.high = max(p.high, p.low+1, math.Ceil(math.Log10(l.Took.At(share(last(l))))))
	}
	p.nines = max(p.nines, 1)
	return p
}

// last is where a curve ends: its longest sample, or the end of the axis.
func last(l Line) float64 { return min(ninesMost, math.Log10(float64(l.Took.n))) }

func share(nines float64) float64 { return 1 - math.Pow(10, -nines) }

func (p *panel) x(ns float64) float64 {
	return p.left + (math.Log10(max(ns, 1))-p.low)/(p.high-p.low)*panelWidth
}

func (p *panel) y(nines float64) float64 { return p.top + (1-nines/p.nines)*panelHeight }

func (p *panel) axes(b *strings.Builder) {
	fmt.Fprintf(b, "<text class=\"t\" x=\"%.0f\" y=\"%.0f\" font-weight=\"bold\">%s</text>\n", p.left, p.top-14, p.Title[:strings.LastIndex(p.Title, ",")])
	for decade := p.low; decade <= p.high; decade++ {
		at := p.x(math.Pow(10, decade))
		fmt.Fprintf(b, "<line class=\"g\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", at, p.top, at, p.top+panelHeight)
		fmt.Fprintf(b, "<text class=\"t\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", at, p.top+panelHeight+16, tick(int(decade)))
	}
	for _, mark := range []struct {
		text  string
		nines float64
	}{{"0 %", 0}, {"50 %", math.Log10(2)}, {"90 %", 1}, {"99 %", 2}, {"99.9 %", 3}, {"99.99 %", 4}} {
		if mark.nines > p.nines {
			break
		}
		at := p.y(mark.nines)
		fmt.Fprintf(b, "<line class=\"g\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", p.left, at, p.left+panelWidth, at)
		fmt.Fprintf(b, "<text class=\"t\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", p.left-6, at+4, mark.text)
	}
}

// tick names a power of ten of nanoseconds.
func tick(decade int) string {
	unit := []string{"ns", "µs", "ms", "s"}[min(decade/3, 3)]
	return fmt.Sprintf("%.0f %s", math.Pow(10, float64(decade-3*min(decade/3, 3))), unit)
}

func (p *panel) curves(b *strings.Builder) {
	for i, l := range p.lines {
		colour := hues[l.Name]
		fmt.Fprintf(b, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\" points=\"", colour)
		end := last(l)
		const steps = 150
		for step := range steps + 1 {
			nines := end * float64(step) / steps
			fmt.Fprintf(b, "%.1f,%.1f ", p.x(l.Took.At(share(nines))), p.y(nines))
		}
		fmt.Fprintf(b, "\"/>\n<text fill=\"%s\" x=\"%.0f\" y=\"%.1f\">%s</text>\n", colour, p.left+panelWidth+10, p.top+12+float64(i)*18, l.Name)
	}
}
