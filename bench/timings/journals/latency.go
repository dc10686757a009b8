package journals

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heirlock/heirlock/bench/timings/account"
)

// quantiles are those that goals are about.
const (
	p50 = iota
	p99
	p999
	quantiles
)

var quantile = [quantiles]float64{0.5, 0.99, 0.999}

// perRound are the quantiles of each round, for each peer.
type perRound [quantiles]map[string][]float64

// Latency is that of single calls as fast as they go.
func Latency(dir string, rounds int) error {
	got, err := latencies(dir, "Submit, 1 producer as fast as it goes", rounds, 1, 200_000, 0)
	if err != nil {
		return err
	}
	account.Goal("latency, 1 producer: p50 ÷ P", account.Ratio(got[p50], "heirlock", "P"), "≤", 1.2)
	got, err = latencies(dir, "Submit, 8 producers as fast as they go", rounds, 8, 200_000, 0)
	if err != nil {
		return err
	}
	account.Goal("latency, 8 producers: p99 ÷ P", account.Ratio(got[p99], "heirlock", "P"), "≤", 0.15)
	account.Goal("latency, 8 producers: p99.9 ÷ P", account.Ratio(got[p999], "heirlock", "P"), "≤", 0.4)
	return nil
}

// Paced is the latency at a steady 20,000 events a second: there the writer sleeps and has to be woken.
func Paced(dir string, rounds int) error {
	got, err := latencies(dir, "Submit, 20,000 a second", rounds, 1, 10_000, time.Second/20_000)
	if err != nil {
		return err
	}
	account.Goal("latency at 20,000 a second: p99 ÷ P", account.Ratio(got[p99], "heirlock", "P"), "≤", 0.2)
	return nil
}

// latencies runs all peers, shows the distributions of all rounds together, and returns the quantiles of each.
func latencies(dir, title string, rounds, producers, n int, pace time.Duration) (perRound, error) {
	var got perRound
	for i := range got {
		got[i] = map[string][]float64{}
	}
	all := map[string]*account.Distribution{}
	_, err := eachRound(dir, rounds, producers, func(p *peer, dir string) (float64, error) {
		took, err := calls(p, dir, producers, n, pace)
		if err != nil {
			return 0, err
		}
		if all[p.name] == nil {
			all[p.name] = &account.Distribution{}
		}
		all[p.name].Add(took...)
		slices.Sort(took)
		for i, q := range quantile {
			got[i][p.name] = append(got[i][p.name], float64(took[int(q*float64(len(took)))]))
		}
		return 0, nil
	})
	if err != nil {
		return got, err
	}
	var lines []account.Line
	for _, p := range peers {
		if all[p.name] != nil {
			lines = append(lines, account.Line{Name: p.name, Took: all[p.name]})
		}
	}
	account.Latencies(title, "P", lines)
	return got, nil
}

// calls is how long each call took, in nanoseconds.
func calls(p *peer, dir string, producers, n int, pace time.Duration) ([]int64, error) {
	submit, end, err := p.open(dir)
	if err != nil {
		return nil, err
	}
	lat := make([][]int64, producers)
	for g := range lat {
		lat[g] = make([]int64, 0, n/producers)
	}
	if err := errors.Join(produce(producers, n, newEvent(0), submit, lat, pace), end()); err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	return slices.Concat(lat...), nil
}
