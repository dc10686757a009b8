package account

import (
	"math/bits"
	"slices"
)

// Distribution counts durations in classes so narrow that a quantile is right to 0.1 %. It needs the same little memory for
// any number of them, so that what is measured has no large heap beside it.
type Distribution struct {
	counts []int
	n      int
	most   int64
}

// fine is how many bits of a duration behind its first one are kept.
const fine = 9

// Add counts durations, in nanoseconds.
func (d *Distribution) Add(durations ...int64) {
	for _, ns := range durations {
		ns = max(ns, 0)
		c := class(ns)
		if c >= len(d.counts) {
			d.counts = append(d.counts, make([]int, c+1-len(d.counts))...)
		}
		d.counts[c]++
		d.n++
		d.most = max(d.most, ns)
	}
}

func class(ns int64) int {
	cut := max(bits.Len64(uint64(ns))-1-fine, 0)
	return cut<<fine + int(ns>>cut)
}

// middle is the middle of a class.
func middle(class int) int64 {
	cut := max(class>>fine-1, 0)
	return int64(class-cut<<fine)<<cut + 1<<cut/2
}

// At is the quantile q, in nanoseconds; At(1) is the longest, exactly.
func (d *Distribution) At(q float64) float64 {
	rank := int(q * float64(d.n))
	if rank >= d.n-1 {
		return float64(d.most)
	}
	for c, n := range d.counts {
		if rank -= n; rank < 0 {
			return float64(middle(c))
		}
	}
	return float64(d.most)
}

// Median is the middle of some figures.
func Median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}

// Ratio is the median of the ratios of two peers within each round, because what else the machine does reaches all of a
// round.
func Ratio(rounds map[string][]float64, a, b string) float64 {
	var r []float64
	for i := range min(len(rounds[a]), len(rounds[b])) {
		r = append(r, rounds[a][i]/rounds[b][i])
	}
	return Median(r)
}
