package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"
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

// submitted is the wall time of one event, from the first call to the closed file.
func submitted(dir string, rounds int) error {
	for _, size := range []struct {
		name   string
		detail int
		n      int
	}{{"200 B", 0, 100_000}, {"2 KiB", 1850, 20_000}} {
		for _, producers := range []int{1, 8} {
			e, allocations := newEvent(size.detail), []float64{}
			took, err := eachRound(dir, rounds, producers, func(p *peer, dir string) (float64, error) {
				submit, end, err := p.open(dir)
				if err != nil {
					return 0, err
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				began := time.Now()
				err = errors.Join(produce(producers, size.n, e, submit, nil, 0), end())
				took := float64(time.Since(began)) / float64(size.n)
				if runtime.ReadMemStats(&after); p.name == "heirlock" {
					allocations = append(allocations, float64(after.Mallocs-before.Mallocs)/float64(size.n))
				}
				return took, err
			})
			if err != nil {
				return err
			}
			what := fmt.Sprintf("%s, %d producers", size.name, producers)
			for _, p := range peers {
				if v := took[p.name]; v != nil {
					fmt.Printf("submit  %-20s %-9s %7.0f ns per event (best %.0f)\n", what, p.name, median(v), slices.Min(v))
				}
			}
			judgeSubmit(what, size.detail > 0, producers, took, median(allocations))
		}
	}
	return nil
}

func judgeSubmit(what string, large bool, producers int, took map[string][]float64, allocations float64) {
	switch {
	case producers == 1 && large:
		atMost(what+": ÷ E", ratio(took, "heirlock", "E"), 1.6)
	case producers == 1:
		atMost(what+": ÷ E", ratio(took, "heirlock", "E"), 4.8)
		atMost(what+": ÷ P", ratio(took, "heirlock", "P"), 0.85)
		atMost(what+": allocations per event", allocations, 1)
	case !large:
		atMost(what+": ÷ P", ratio(took, "heirlock", "P"), 0.85)
		atMost(what+": ÷ S", ratio(took, "heirlock", "S"), 0.25)
	}
}

// percentiles runs all peers and returns each round's percentile of the latency of one call, in nanoseconds.
func percentiles(dir string, rounds, producers, n int, pace time.Duration, of []float64) ([]map[string][]float64, error) {
	out := make([]map[string][]float64, len(of))
	for i := range out {
		out[i] = map[string][]float64{}
	}
	_, err := eachRound(dir, rounds, producers, func(p *peer, dir string) (float64, error) {
		submit, end, err := p.open(dir)
		if err != nil {
			return 0, err
		}
		lat := make([][]int64, producers)
		for g := range lat {
			lat[g] = make([]int64, 0, n/producers)
		}
		if err := errors.Join(produce(producers, n, newEvent(0), submit, lat, pace), end()); err != nil {
			return 0, err
		}
		all := slices.Concat(lat...)
		slices.Sort(all)
		for i, q := range of {
			out[i][p.name] = append(out[i][p.name], float64(all[min(int(q*float64(len(all))), len(all)-1)]))
		}
		return 0, nil
	})
	return out, err
}

func showLatency(what string, of []float64, got []map[string][]float64) {
	for _, p := range peers {
		if got[0][p.name] == nil {
			continue
		}
		fmt.Printf("%-30s %-9s", what, p.name)
		for i, q := range of {
			fmt.Printf("  p%-5.4g %8.2f µs", q*100, median(got[i][p.name])/1e3)
		}
		fmt.Println()
	}
}

// latency is that of single calls as fast as they go.
func latency(dir string, rounds int) error {
	of := []float64{0.5, 0.99, 0.999}
	for _, producers := range []int{1, 8} {
		got, err := percentiles(dir, rounds, producers, 200_000, 0, of)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("latency, %d producers", producers)
		showLatency(what, of, got)
		if producers == 1 {
			atMost(what+": p50 ÷ P", ratio(got[0], "heirlock", "P"), 1.2)
		} else {
			atMost(what+": p99 ÷ P", ratio(got[1], "heirlock", "P"), 0.15)
			atMost(what+": p99.9 ÷ P", ratio(got[2], "heirlock", "P"), 0.4)
		}
	}
	return nil
}

// paced is the latency at a steady 20,000 events a second: there the writer sleeps and has to be woken.
func paced(dir string, rounds int) error {
	of := []float64{0.5, 0.99, 0.999}
	got, err := percentiles(dir, rounds, 1, 10_000, 50*time.Microsecond, of)
	if err != nil {
		return err
	}
	showLatency("latency at 20,000 a second", of, got)
	atMost("latency at 20,000 a second: p99 ÷ P", ratio(got[1], "heirlock", "P"), 0.2)
	return nil
}
