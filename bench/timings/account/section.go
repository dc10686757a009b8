// Package account keeps what one run measured: it prints each section as it comes, judges the goals, and writes the document
// and the picture.
package account

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
)

// Section is one table of the document. The first column names the row.
type Section struct {
	Title   string
	Columns []string
	Rows    [][]string
	Below   string // a sentence under the table
	lines   []Line // the distributions that the picture draws
}

// Line is the distribution of one peer.
type Line struct {
	Name string
	Took *Distribution
}

var sections []Section

// Show prints a section, and keeps it.
func Show(s Section) {
	sections = append(sections, s)
	show(s)
}

func show(s Section) {
	fmt.Printf("\n%s\n", s.Title)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{s.Columns}, s.Rows...) {
		fmt.Fprintln(w, "  "+strings.Join(row, "\t"))
	}
	_ = w.Flush()
	if s.Below != "" {
		fmt.Println("  " + s.Below)
	}
}

// Latencies shows distributions, and their medians as multiples of the base's.
func Latencies(title, base string, lines []Line) {
	longest, measure := 0.0, 0.0
	for _, l := range lines {
		longest = max(longest, l.Took.At(0.5))
		if l.Name == base {
			measure = l.Took.At(0.5)
		}
	}
	unit, ns := "µs", 1e3
	if longest >= 1e6 {
		unit, ns = "ms", 1e6
	}
	s := Section{Title: title + ", " + unit, Columns: []string{"", "n", "median", "p90", "p99", "p99.9", "most", "median ÷ " + base}, lines: lines}
	for _, l := range lines {
		row := []string{l.Name, fmt.Sprint(l.Took.n)}
		for _, q := range []float64{0.5, 0.9, 0.99, 0.999} {
			if int(q*float64(l.Took.n)) >= l.Took.n-1 { // it would be the longest again
				row = append(row, "–")
				continue
			}
			row = append(row, Figure(l.Took.At(q)/ns))
		}
		s.Rows = append(s.Rows, append(row, Figure(l.Took.At(1)/ns), fmt.Sprintf("%.2f", l.Took.At(0.5)/measure)))
	}
	Show(s)
}

// Figure has three digits that say something, and no exponent.
func Figure(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// markdown is the section as text of the document.
func (s *Section) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\n| %s |\n|%s\n", s.Title, strings.Join(s.Columns, " | "), strings.Repeat(" --- |", len(s.Columns)))
	for _, row := range s.Rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	if s.Below != "" {
		fmt.Fprintf(&b, "\n%s\n", s.Below)
	}
	return b.String()
}
