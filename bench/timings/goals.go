package main

import "fmt"

var goals, missed []string

func goal(what string, got, most float64) {
	line := fmt.Sprintf("%s: %.2f, at most %.2f", what, got, most)
	if goals = append(goals, line); got > most {
		missed = append(missed, line)
	}
}

func verdict() bool {
	for _, line := range missed {
		fmt.Println("missed:", line)
	}
	fmt.Printf("verdict: %d of %d goals hold\n", len(goals)-len(missed), len(goals))
	return len(missed) == 0
}
