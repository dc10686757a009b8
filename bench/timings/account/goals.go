package account

import (
	"fmt"
	"strings"
)

// aim is one bound that a measurement is held against.
type aim struct {
	what, got, bound, result string
}

const (
	holds       = "holds"
	missed      = "missed"
	notMeasured = "not measured"
)

var (
	aims   []aim
	failed []string
)

// Goal holds a figure against its bound: the relation is ≤, < or ≥.
func Goal(what string, got float64, relation string, bound float64) {
	held := false
	switch relation {
	case "≤":
		held = got <= bound
	case "<":
		held = got < bound
	case "≥":
		held = got >= bound
	default:
		panic("no relation: " + relation)
	}
	result := missed
	if held {
		result = holds
	}
	aims = append(aims, aim{what, fmt.Sprintf("%.3g", got), fmt.Sprintf("%s %g", relation, bound), result})
}

// NotMeasured is a goal that cannot be judged here, and why.
func NotMeasured(what, why string) {
	aims = append(aims, aim{what: what, got: why, result: notMeasured})
}

// Failed is a measurement that ended with an error.
func Failed(name string, err error) {
	failed = append(failed, fmt.Sprintf("%s: %v", name, err))
	fmt.Printf("\n%s failed: %v\n", name, err)
}

// goals is the section of all goals.
func goals() Section {
	s := Section{Title: "Goals", Columns: []string{"", "got", "goal", ""}}
	for _, a := range aims {
		result := a.result
		if result == missed {
			result = "**missed**"
		}
		s.Rows = append(s.Rows, []string{a.what, a.got, a.bound, result})
	}
	s.Below = summary()
	for _, line := range failed {
		s.Below += "\nFailed: " + line + "."
	}
	return s
}

func summary() string {
	count := map[string]int{}
	for _, a := range aims {
		count[a.result]++
	}
	parts := []string{fmt.Sprintf("%d of %d goals hold", count[holds], len(aims))}
	for _, result := range []string{missed, notMeasured} {
		if n := count[result]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, result))
		}
	}
	if len(failed) > 0 {
		parts = append(parts, fmt.Sprintf("%d measurements failed", len(failed)))
	}
	return strings.Join(parts, ", ") + "."
}

// Verdict prints the goals, and ends with one line. It reports whether none was missed and nothing failed.
func Verdict() bool {
	show(goals())
	good := len(failed) == 0
	for _, a := range aims {
		good = good && a.result != missed
	}
	fmt.Println("verdict:", strings.TrimSuffix(summary(), "."))
	return good
}
