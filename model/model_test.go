package model

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// check is one run of the checker: a protocol, a way to search, and what must come of it.
type check struct {
	name     string
	protocol string // the switches of the model
	search   string // those of the search, for the C compiler
	bounds   string // of the search, for the verifier
	floor    int    // fewer states would mean that the model does nothing; of a protocol that holds
	fails    string // what the verifier says of a protocol that does not hold, "" if it must hold
	long     bool   // left out by -short
}

const (
	exhaustive = "-O1 -DSAFETY -DCOLLAPSE"
	quick      = "-O0 -DSAFETY -DCOLLAPSE" // of few states: to build it takes longer than to run it
	fair       = "-O1 -DCOLLAPSE"          // liveness
	bits       = "-O1 -DSAFETY -DBITSTATE" // as many states as a table of bits tells apart
	shortest   = "-O0 -DSAFETY -DBFS"      // breadth first: the first counterexample is a shortest one
	small      = "-DPLAIN -DONLY_HOLDERS -DKILLS=0 "

	twoHolders  = "assertion violated (holders<=1)"
	twoUnder    = "assertion violated (under<=1)"
	liveRemoved = "assertion violated ( !((((rec[tmp]!=0)" // check of unlink in kernel.pml
	wedge       = "acceptance cycle"
)

var checks = []check{
	{name: "safe, 3 processes, bounded", protocol: "-DN=3 -DKILLS=1 -DEXECS -DORPHANS", search: bits, bounds: "-m100000 -w23", floor: 1_000_000, long: true},
	{name: "safe, 2 processes", protocol: "-DEXECS -DORPHANS", search: exhaustive, bounds: "-m500000", floor: 1_000_000},
	{name: "safe with early files", protocol: "-DEARLY -DPLAIN -DKILLS=0", search: exhaustive, bounds: "-m500000", floor: 400_000, long: true},
	{name: "safe without a guard", protocol: "-DNO_GUARD -DEXECS -DORPHANS", search: quick, bounds: "-m500000", floor: 150_000},
	{name: "safe under reclaim-released", protocol: "-DRELEASED -DORPHANS", search: exhaustive, bounds: "-m500000", floor: 500_000, long: true},
	{name: "safe in two views", protocol: "-DTWO_VIEWS -DEXECS", search: exhaustive, bounds: "-m500000", floor: 500_000, long: true},
	{name: "the dead are inherited from", protocol: "-DLIVE -DKILLS=1", search: fair, bounds: "-a -f -m50000", floor: 150_000},

	{name: "NO_DESCRIPTOR", protocol: small + "-DNO_DESCRIPTOR", search: shortest, fails: twoHolders},
	{name: "NO_DESCRIPTOR without a guard", protocol: small + "-DNO_DESCRIPTOR -DNO_GUARD", search: shortest, fails: twoHolders, long: true},
	{name: "NO_DESCRIPTOR, one kill", protocol: "-DPLAIN -DONLY_HOLDERS -DKILLS=1 -DNO_STALE_GUARD -DNO_DESCRIPTOR", search: shortest, fails: twoHolders, long: true},
	{name: "NO_FLOCK", protocol: small + "-DNO_FLOCK", search: shortest, fails: twoHolders},
	{name: "NO_FLOCK, removals", protocol: "-DPLAIN -DKILLS=0 -DNO_FLOCK", search: shortest, fails: liveRemoved, long: true},
	{name: "NO_FLOCK without a guard", protocol: small + "-DNO_FLOCK -DNO_GUARD", search: shortest, fails: twoHolders, long: true},
	{name: "GUARD_TAKEN_OVER", protocol: "-DPLAIN -DKILLS=0 -DGUARD_TAKEN_OVER", search: shortest, fails: twoUnder},
	{name: "AGE", protocol: small + "-DAGE -DEXECS", search: shortest, fails: twoHolders},
	{name: "CLOSE_FIRST", protocol: small + "-DRELEASED -DCLOSE_FIRST", search: shortest, fails: twoHolders, long: true},
	{name: "NO_CLEARING", protocol: "-DLIVE -DKILLS=0 -DNO_CLEARING", search: "-O0 -DCOLLAPSE", bounds: "-a -f -m50000", fails: wedge},
	{name: "TWO_VIEWS without a guard", protocol: small + "-DTWO_VIEWS -DNO_STALE_GUARD -DNO_GUARD", search: shortest, fails: twoHolders, long: true},
	{name: "ANY_VIEW", protocol: small + "-DTWO_VIEWS -DANY_VIEW", search: shortest, fails: twoHolders, long: true},
}

func tools(t *testing.T) {
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the model is not checked here: %v", err)
		}
	}
}

// run runs one tool of a check in its directory, and returns all that it said.
func run(t *testing.T, dir, tool string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", tool, args, err, out)
	}
	return string(out)
}

// verify has spin write the verifier of a protocol, builds it, and runs it.
func verify(t *testing.T, c check) (dir, said string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"heirlock.pml", "kernel.pml"} {
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	run(t, dir, "spin", append(append([]string{"-a"}, strings.Fields(c.protocol)...), "heirlock.pml")...)
	run(t, dir, "gcc", append(append([]string{"-w", "-DMEMLIM=1500"}, strings.Fields(c.search)...), "-o", "pan", "pan.c")...)
	return dir, run(t, dir, "./pan", strings.Fields(c.bounds)...)
}

var (
	errorsFound = regexp.MustCompile(`errors: (\d+)`)
	stored      = regexp.MustCompile(`(?m)^\s*(\d+) states, stored`)
	figures     = regexp.MustCompile(`depth reached \d+|elapsed time [\d.]+ seconds`)
	unreached   = regexp.MustCompile(`unreached in proctype contender[^(]*(?s:.*?)\((\d+) of (\d+) states\)`)
)

func number(t *testing.T, said string, pattern *regexp.Regexp) int {
	t.Helper()
	m := pattern.FindStringSubmatch(said)
	if m == nil {
		t.Fatalf("%s is not to be found in what the verifier said:\n%s", pattern, said)
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// The protocol as implemented holds, in every state that two processes and any number of kills can bring about, and each
// protocol without one of its rules fails, as its switch says. Every line of the log is a verdict.
func TestModel(t *testing.T) {
	tools(t)
	t.Cleanup(func() { // after all of them
		if !t.Failed() {
			t.Log("VERDICT: the protocol holds; each one without a rule of it fails as expected")
		}
	})
	for _, c := range checks {
		if c.long && testing.Short() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, said := verify(t, c)
			states, found := number(t, said, stored), number(t, said, errorsFound)
			measured := fmt.Sprintf("%d states, %s", states, strings.Join(figures.FindAllString(said, -1), ", "))
			if c.fails != "" {
				if found == 0 || !strings.Contains(said, c.fails) {
					t.Fatalf("no %q:\n%s", c.fails, said)
				}
				t.Logf("%s: FAILS, as it must: %s; %s\n%s", c.name, c.fails, measured, replay(t, dir, c))
				return
			}
			if found != 0 {
				t.Fatalf("%s\n%s", said, replay(t, dir, c))
			}
			if states < c.floor {
				t.Errorf("only %d states, at least %d are expected: the model does less than it did", states, c.floor)
			}
			complete(t, c, said)
			t.Logf("%s: HOLDS: %s", c.name, measured)
		})
	}
}

// complete: an exhaustive search was cut short by no bound, and nearly all statements were executed in it.
func complete(t *testing.T, c check, said string) {
	t.Helper()
	if c.search != bits && (strings.Contains(said, "max search depth too small") || strings.Contains(said, "Search not completed")) {
		t.Errorf("the search was not exhaustive:\n%s", said)
	}
	if m := unreached.FindStringSubmatch(said); m != nil {
		dead, _ := strconv.Atoi(m[1])
		all, _ := strconv.Atoi(m[2])
		if dead*10 > all {
			t.Errorf("%d of %d statements of a contender were never executed:\n%s", dead, all, said)
		}
	}
}

var step = regexp.MustCompile(`(?m)^\s*([ABC]) (.*)$`)

// replay is the counterexample, one system call a line, in a column for each process.
func replay(t *testing.T, dir string, c check) string {
	t.Helper()
	out := run(t, dir, "spin", append(append([]string{"-t", "-T"}, strings.Fields(c.protocol)...), "heirlock.pml")...)
	var lines strings.Builder
	for _, m := range step.FindAllStringSubmatch(out, -1) {
		column := int(m[1][0] - 'A')
		lines.WriteString("  " + m[1] + ": " + strings.Repeat(" ", 36*column) + m[2] + "\n")
	}
	return lines.String()
}
