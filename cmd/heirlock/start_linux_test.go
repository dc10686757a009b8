package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// A cron job pays for the start of the command each time, and what its packages set up before main is most of that. Their
// memory tells: a library for schemas once took 1.7 MB, and made each run three times as long.
func TestStartSetsUpLittle(t *testing.T) {
	command := filepath.Join(t.TempDir(), "heirlock")
	if out, err := exec.Command("go", "build", "-o", command, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(command, "--version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	trace, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	packages, sum := regexp.MustCompile(`init (\S+) @.* (\d+) bytes`).FindAllStringSubmatch(string(trace), -1), 0
	for _, p := range packages {
		n, err := strconv.Atoi(p[2])
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	if len(packages) < 10 || sum > 400<<10 {
		t.Errorf("%d packages take %d bytes before main:\n%s", len(packages), sum, trace)
	}
	t.Logf("%d packages, %d bytes", len(packages), sum)
}

// A command line that begins with a verb makes that command alone, and any other all of them.
func TestVerbAlone(t *testing.T) {
	for _, args := range [][]string{{"run", "x", "--", "true"}, {"journal", "read", "x"}} {
		if all := newRoot(args, nil).Commands(); len(all) != 1 || all[0].Name() != args[0] {
			t.Errorf("%q makes %d commands", args, len(all))
		}
	}
	for _, args := range [][]string{nil, {"help", "run"}, {"--version"}, {"runs"}} {
		if all := newRoot(args, nil).Commands(); len(all) != len(verbs)+1 { // and completion
			t.Errorf("%q makes %d commands", args, len(all))
		}
	}
}
