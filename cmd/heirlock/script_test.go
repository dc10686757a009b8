package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"heirlock": main})
}

// TestScripts runs every promise of the command line on real processes.
func TestScripts(t *testing.T) {
	found, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(found) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Deadline:            time.Now().Add(5 * time.Minute),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":  status,
			"waitfor": waitFor,
			"pidkill": pidKill,
			"nothing": nothing,
		},
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Getuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
	})
}

// status N CMD…: the command ends with exactly this exit status, which `! exec` does not tell.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command…")
	}
	want := args[0]
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		rest, found := strings.CutPrefix(err.Error(), "exit status ")
		if !found {
			ts.Fatalf("%v", err)
		}
		got = rest
	}
	if got != want {
		ts.Fatalf("exit status %s, want %s", got, want)
	}
}

// waitfor FILE: until it exists and holds a whole line. The deadline is only there to end a failed test.
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		if neg && os.IsNotExist(err) || !neg && err == nil && strings.HasSuffix(string(text), "\n") {
			return
		}
	}
	ts.Fatalf("%s: not within a minute", args[0])
}

// pidkill SIGNAL FILE: sends the signal to the process whose number the file holds; with !, waits until it is gone.
func pidKill(ts *testscript.TestScript, neg bool, args []string) {
	pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(args[1])))
	ts.Check(err)
	ts.Check(ts.Exec("/bin/kill", "-"+args[0], strconv.Itoa(pid)))
	for neg {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if err != nil || len(fields) > 17 && fields[0] == "Z" && fields[17] == "1" { // Z alone is a leader whose threads run
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// nothing DIR: the directory is empty, hidden files included.
func nothing(ts *testscript.TestScript, neg bool, args []string) {
	names, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(names) > 0 {
		ts.Fatalf("%s holds %v", args[0], names)
	}
}
