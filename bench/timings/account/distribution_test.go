package account

import (
	"math"
	"slices"
	"testing"
)

// Whatever the durations, a quantile is that of the sorted samples to 0.1 %, and the longest is exact.
func TestQuantiles(t *testing.T) {
	for _, step := range []float64{1.0003, 1.01, 3} {
		var d Distribution
		var all []int64
		for v := 0.0; v < 1e12; v = max(v+1, v*step) {
			all = append(all, int64(v))
		}
		d.Add(all...)
		slices.Sort(all)
		for q := 0.0; q <= 1; q += 0.001 {
			want := float64(all[min(int(q*float64(len(all))), len(all)-1)])
			if got := d.At(q); math.Abs(got-want) > want/1000 {
				t.Errorf("step %g, quantile %g: %.0f, want %.0f", step, q, got, want)
			}
		}
		if got, want := d.At(1), float64(all[len(all)-1]); got != want {
			t.Errorf("longest: %.0f, want %.0f", got, want)
		}
	}
}

// A ratio is that of a round, and the middle one of the rounds.
func TestRatio(t *testing.T) {
	rounds := map[string][]float64{"a": {10, 400, 9}, "b": {5, 100, 1}}
	if got := Ratio(rounds, "a", "b"); got != 4 {
		t.Errorf("ratio %g, want 4", got)
	}
}

// A bound that is not met is missed, and what was not measured does not hold.
func TestGoals(t *testing.T) {
	defer func() { aims = nil }()
	Goal("a", 2, "≤", 2)
	Goal("b", 2, "<", 2)
	Goal("c", 2, "≥", 2.5)
	NotMeasured("d", "not installed")
	if got, want := summary(), "1 of 4 goals hold, 2 missed, 1 not measured."; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if Verdict() {
		t.Error("the verdict is good with two goals missed")
	}
	aims = aims[:1]
	if !Verdict() {
		t.Error("the verdict is bad with one goal, which holds")
	}
}
