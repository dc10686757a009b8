package main

import (
	"fmt"
	"slices"
)

// uncontended is acquire and release in one process, nobody else there.
func uncontended(rounds int) error {
	return eachLocker("uncontended", append(slices.Clone(names), "bare"), 20*rounds, func(name, path string, n int) []int64 {
		took := make([]int64, 0, n)
		for range n {
			began := mono()
			release, err := lockers[name](path)
			if err == nil {
				err = release()
			}
			if err != nil {
				panic(fmt.Sprintf("%s: %v", name, err))
			}
			took = append(took, mono()-began)
		}
		return took
	})
}
