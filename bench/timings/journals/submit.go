package journals

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/heirlock/heirlock/bench/timings/account"
)

// eachRound runs the peers that can have so many producers, once a round, each time with another first.
func eachRound(dir string, rounds, producers int, do func(p *peer, dir string) (float64, error)) (map[string][]float64, error) {
	out := map[string][]float64{}
	for round := range rounds {
		for i := range peers {
			p := &peers[(i+round)%len(peers)]
			if p.producers < producers {
				continue
			}
			at := filepath.Join(dir, p.name)
			if err := os.Mkdir(at, 0o700); err != nil {
				return nil, err
			}
			runtime.GC()
			v, err := do(p, at)
			if err := errors.Join(err, os.RemoveAll(at)); err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			out[p.name] = append(out[p.name], v)
		}
	}
	return out, nil
}

// produce submits n events from so many goroutines. The latencies of the calls go to lat, if that is not nil; with a pace
// one call begins each time that much has passed.
func produce(producers, n int, e event, submit func(*event) error, lat [][]int64, pace time.Duration) error {
	errs := make([]error, producers)
	var all sync.WaitGroup
	for g := range producers {
		all.Go(func() {
			mine := e
			next := time.Now()
			for range n / producers {
				if pace > 0 {
					for next = next.Add(pace); time.Until(next) > 0; {
					}
				}
				if lat == nil {
					if err := submit(&mine); err != nil {
						errs[g] = err
					}
					continue
				}
				began := time.Now()
				if err := submit(&mine); err != nil {
					errs[g] = err
				}
				lat[g] = append(lat[g], int64(time.Since(began)))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// submitSizes are the events, and how many of them make a round.
var submitSizes = []struct {
	name      string
	detail, n int
}{{"200 B", 0, 100_000}, {"2 KiB", 1850, 20_000}}

// Submit is the wall time of one event, from the first call to the closed file.
func Submit(dir string, rounds int) error {
	s := account.Section{
		Title:   "writing events, from the first call to the closed file",
		Columns: []string{"events, producers", "", "ns per event", "best round", "heirlock ÷ it"},
	}
	for _, size := range submitSizes {
		for _, producers := range []int{1, 8} {
			e, allocations := newEvent(size.detail), []float64{}
			took, err := eachRound(dir, rounds, producers, func(p *peer, dir string) (float64, error) {
				ns, allocated, err := wrote(p, dir, producers, size.n, e)
				if p.name == "heirlock" {
					allocations = append(allocations, allocated)
				}
				return ns, err
			})
			if err != nil {
				return err
			}
			what := fmt.Sprintf("%s, %d", size.name, producers)
			for _, p := range peers {
				if v := took[p.name]; v != nil {
					s.Rows = append(s.Rows, []string{what, p.name, fmt.Sprintf("%.0f", account.Median(v)), fmt.Sprintf("%.0f", slices.Min(v)),
						fmt.Sprintf("%.2f", account.Ratio(took, "heirlock", p.name))})
				}
			}
			judgeSubmit(fmt.Sprintf("submit, %s, producers: %d", size.name, producers), size.detail > 0, producers, took, account.Median(allocations))
		}
	}
	account.Show(s)
	return nil
}

// wrote is the time, and the number of allocations, of one event.
func wrote(p *peer, dir string, producers, n int, e event) (ns, allocations float64, err error) {
	submit, end, err := p.open(dir)
	if err != nil {
		return 0, 0, err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	err = errors.Join(produce(producers, n, e, submit, nil, 0), end())
	ns = float64(time.Since(began)) / float64(n)
	runtime.ReadMemStats(&after)
	return ns, float64(after.Mallocs-before.Mallocs) / float64(n), err
}

func judgeSubmit(what string, large bool, producers int, took map[string][]float64, allocations float64) {
	atMost := func(peer string, bound float64) {
		account.Goal(what+", ns per event ÷ "+peer, account.Ratio(took, "heirlock", peer), "≤", bound)
	}
	switch {
	case producers == 1 && large:
		atMost("E", 1.6)
	case producers == 1:
		atMost("E", 4.8)
		atMost("P", 0.85)
		account.Goal(what+", allocations per event", allocations, "≤", 1)
	case !large:
		atMost("P", 0.85)
		atMost("S", 0.25)
	}
}
