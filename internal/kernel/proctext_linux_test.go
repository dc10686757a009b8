package kernel

import (
	"errors"
	"testing"
)

// Without a pidfd, exited is state Z with exactly one thread left, seen twice with one start, and nothing else.
func TestJudgeNumber(t *testing.T) {
	line := func(state byte, threads int, start string) procStat {
		return procStat{pid: 7, state: state, threads: threads, start: start}
	}
	runs := Observation{Presence: Running, Instance: Instance{PID: 7, Platform: "linux", StartID: "22"}}
	exited := Observation{Presence: Exited}
	exchanged := Observation{Presence: Unknown, Cause: errExchanged}
	for _, c := range []struct {
		name          string
		first, second procStat
		want          Observation
	}{
		{"runs", line('R', 1, "22"), line('S', 1, "22"), runs},
		{"threads come and go", line('S', 3, "22"), line('S', 1, "22"), runs},
		{"waits for its parent", line('Z', 1, "22"), line('Z', 1, "22"), exited},
		{"leader left, threads run", line('Z', 3, "22"), line('Z', 3, "22"), runs},
		{"leader left, threads go", line('Z', 3, "22"), line('Z', 2, "22"), runs},
		{"zombie without a thread count", line('Z', 0, "22"), line('Z', 0, "22"), runs},
		{"in exec", line('X', 1, "22"), line('X', 1, "22"), runs},
		{"in exec, lower case", line('x', 1, "22"), line('x', 1, "22"), runs},
		{"in exec, then gone", line('X', 1, "22"), line('Z', 1, "22"), exchanged},
		{"exits meanwhile", line('S', 1, "22"), line('Z', 1, "22"), exchanged},
		{"last thread exits meanwhile", line('Z', 2, "22"), line('Z', 1, "22"), exchanged},
		{"was gone, runs", line('Z', 1, "22"), line('S', 1, "22"), exchanged},
		{"number reused", line('S', 1, "22"), line('S', 1, "23"), exchanged},
		{"number reused, both gone", line('Z', 1, "22"), line('Z', 1, "23"), exchanged},
	} {
		got := judgeNumber(c.first, c.second)
		if !errors.Is(got.Cause, c.want.Cause) || got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
