// Command journal measures the journal beside its limits and its rivals, in one run.
//
//	go -C bench run ./journal [-rounds N] [-dir D] [submit|latency|paced|slow|read|open|pipe]…
//
// F appends ready bytes in 64 KiB writes; E encodes by hand and does that; P is zap → BufferedWriteSyncer → lumberjack; S is
// zerolog → lumberjack. Each round runs all of them, in another order. Figures are medians over the rounds; ratios are
// medians of the ratios within a round, because what else the machine does reaches all of a round.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
)

var measurements = map[string]func(dir string, rounds int) error{
	"submit": submitted, "latency": latency, "paced": paced, "slow": slow, "read": reading, "open": opening, "pipe": pipes,
}

func main() {
	rounds := flag.Int("rounds", 7, "rounds")
	dir := flag.String("dir", os.TempDir(), "where the files go; the filesystem is what is measured")
	flag.Parse()
	what := flag.Args()
	if len(what) == 0 {
		what = []string{"submit", "latency", "paced", "slow", "read", "open", "pipe"}
	}
	missed := 0
	for _, w := range what {
		measure := measurements[w]
		if measure == nil {
			fmt.Fprintf(os.Stderr, "journal: no measurement %q\n", w)
			os.Exit(64)
		}
		work, err := os.MkdirTemp(*dir, "journal-")
		if err == nil {
			err = measure(work, *rounds)
		}
		_ = os.RemoveAll(work)
		if err != nil {
			fmt.Fprintf(os.Stderr, "journal: %s: %v\n", w, err)
			os.Exit(1)
		}
	}
	for _, g := range goals {
		verdict := "holds"
		if g.got > g.most || g.least > 0 && g.got < g.least {
			verdict, missed = "MISSED", missed+1
		}
		bound := fmt.Sprintf("≤ %.3g", g.most)
		if g.least > 0 {
			bound = fmt.Sprintf("≥ %.3g", g.least)
		}
		fmt.Printf("goal  %-58s %7.3f  %-8s %s\n", g.what, g.got, bound, verdict)
	}
	fmt.Printf("verdict: %d of %d goals hold\n", len(goals)-missed, len(goals))
	if missed > 0 {
		os.Exit(1)
	}
}

// goal is one bound that a measurement is held against.
type goal struct {
	what             string
	got, most, least float64
}

var goals []goal

func atMost(what string, got, most float64) {
	goals = append(goals, goal{what: what, got: got, most: most})
}
func atLeast(what string, got, least float64) { goals = append(goals, goal{what, got, 1e300, least}) }

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}

// ratio is the median of the ratios of two peers within each round.
func ratio(rounds map[string][]float64, a, b string) float64 {
	var r []float64
	for i := range rounds[a] {
		r = append(r, rounds[a][i]/rounds[b][i])
	}
	return median(r)
}
