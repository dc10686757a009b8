package locks

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/heirlock/heirlock/bench/timings/account"
)

// Of each round and locker.
const (
	handOffs = 50
	kills    = 20
	takes    = 400
)

// HandOff is release → held, with one waiter, of another process, at rest.
func HandOff(dir string, rounds int) error {
	median, err := eachLocker(dir, "release → held by the one waiter, another process", "flock", withBare, rounds, func(name, path string) ([]int64, error) {
		a, err := holder(name, path, true)
		if err != nil {
			return nil, err
		}
		defer func() { a.stop() }()
		b, err := start("hold", name, path)
		if err != nil {
			return nil, err
		}
		defer func() { b.stop() }()
		var took []int64
		for range handOffs {
			if err := b.wait(); err != nil {
				return nil, err
			}
			blocked()
			if err := a.say("give"); err != nil {
				return nil, err
			}
			gave, err := a.expect("gave")
			if err != nil {
				return nil, err
			}
			held, err := b.expect("held")
			if err != nil {
				return nil, err
			}
			took = append(took, held-gave)
			a, b = b, a
		}
		return took, nil
	})
	if err == nil {
		account.Goal("hand-off, median ÷ flock", account.Ratio(median, "heirlock", "flock"), "≤", 2)
	}
	return err
}

// Kill is SIGKILL of the owner → held.
func Kill(dir string, rounds int) error {
	median, err := eachLocker(dir, "SIGKILL of the owner → held by the one waiter", "flock", names, rounds, func(name, path string) ([]int64, error) {
		a, err := holder(name, path, true)
		if err != nil {
			return nil, err
		}
		defer func() { a.stop() }()
		var took []int64
		for range kills {
			b, err := holder(name, path, false)
			if err != nil {
				return nil, err
			}
			blocked()
			at := mono()
			err = a.cmd.Process.Kill()
			a.stop()
			a = b
			if err != nil {
				return nil, err
			}
			held, err := b.expect("held")
			if err != nil {
				return nil, err
			}
			took = append(took, held-at)
		}
		return took, nil
	})
	if err == nil {
		account.Goal("SIGKILL of the owner → held, median ÷ flock", account.Ratio(median, "heirlock", "flock"), "≤", 1.6)
	}
	return err
}

// eachLocker shows the distributions of all lockers, beside that of the base, and returns the medians of each round.
func eachLocker(dir, title, base string, names []string, rounds int, measure func(name, path string) ([]int64, error)) (map[string][]float64, error) {
	all, medians := map[string]*account.Distribution{}, map[string][]float64{}
	for round := range rounds {
		for i := range names {
			name := names[(i+round)%len(names)]
			took, err := measure(name, filepath.Join(dir, fmt.Sprintf("%s-%d.lock", name, round)))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if all[name] == nil {
				all[name] = &account.Distribution{}
			}
			all[name].Add(took...)
			slices.Sort(took)
			medians[name] = append(medians[name], float64(took[len(took)/2]))
		}
	}
	var lines []account.Line
	for _, name := range names {
		lines = append(lines, account.Line{Name: name, Took: all[name]})
	}
	account.Latencies(title, base, lines)
	return medians, nil
}
