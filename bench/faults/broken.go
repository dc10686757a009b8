package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A proof that cannot fail proves nothing: each of these is heirlock with one rule taken out, built through an overlay
// (go build -overlay), so that nothing of it is ever in the product. The rows beside it must show two holders.
//
// Most rules stand behind the flock of the lock's own inode, which vetoes alone what the evidence gets wrong; they show
// only where two mounts do not share it. What the guard adds where they do share it, nothing here can show: model/ does.

type breakage struct {
	name, why string
	rows      string
	edits     []edit
}

type edit struct {
	file, old, new string
}

var breakages = []breakage{
	{"no flock in destroy", "a command that outlives its wrapper holds nothing but the flock", "wrapper",
		[]edit{{"reclaim.go", "lockErr := t.lockPatiently(f, name, seen)", "var lockErr error"}}},
	{"ESRCH read as gone across namespaces", "a number of another namespace names nobody here", "twice-ns", []edit{
		{"process/compare.go", "case recorded.Namespace != own.Namespace:", "case false && recorded.Namespace != own.Namespace:"},
		{"verdict.go", "|| f.ownErr != nil || r.Process.Namespace != f.own.Instance.Namespace {", "|| f.ownErr != nil {"},
	}},
	{"state Z read as gone", "a process whose first thread has ended shows Z and works", "twice-leader",
		[]edit{{"internal/kernel/probe_linux.go", "case statErr != nil:\n",
			"case statErr == nil && st.state == 'Z':\n\t\treturn Observation{Presence: Exited, PidfdID: id}\n\tcase statErr != nil:\n"}}},
	{"guard taken over directly", "the guard is what two takers share who do not share the flock", "twice-delayed",
		[]edit{{"guard.go", "return t.clearGuard(g)\n\t}\n\tif err", "return do()\n\t}\n\tif err"}}},
	{"age added", "an owner that is stopped is as old as one that is dead", "twice-stopped", []edit{{"verdict.go", "	d.conclude(&f)\n",
		"	if d.Liveness == process.Alive && time.Since(time.Unix(0, f.at.Mtime)) > time.Minute {\n\t\td.Identity, d.Liveness = process.PIDGone, process.Gone\n\t}\n\td.conclude(&f)\n"},
		{"verdict.go", "\t\"fmt\"\n", "\t\"fmt\"\n\t\"time\"\n"}}},
}

// breakAll builds each broken copy and requires that its row catches it, and that the same row passes unbroken.
func breakAll(o options) int {
	root, err := filepath.Abs(o.root)
	if err != nil {
		fmt.Println(err)
		return 2
	}
	missed := 0
	for _, b := range breakages {
		if o.rows != "" && b.rows != o.rows {
			continue
		}
		said, err := b.caught(root)
		word := "caught: "
		if err != nil {
			missed++
			word, said = "MISSED: ", err.Error()
		}
		fmt.Printf("%-40s %s%s\n", b.name, word, said)
	}
	if missed > 0 {
		fmt.Printf("verdict: FAILED: %d of %d broken copies were not caught\n", missed, len(breakages))
		return 1
	}
	fmt.Printf("verdict: ok: each of %d broken copies shows two holders, and the same rows pass unbroken\n", len(breakages))
	return 0
}

// caught runs the row over the broken copy, and over the sound one.
func (b *breakage) caught(root string) (string, error) {
	dir, err := os.MkdirTemp("", "broken-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := b.overlay(root, dir)
	if err != nil {
		return "", err
	}
	out, code, err := b.run(root, dir, "-overlay="+overlay)
	if err != nil {
		return "", err
	}
	if code == 2 || strings.Contains(out, "not run (") && !strings.Contains(out, double) {
		return "", fmt.Errorf("the row %s cannot be run here: %s", b.rows, shorten(out, 400))
	}
	if code != 1 || !strings.Contains(out, double) {
		return "", fmt.Errorf("the row %s ended with %d: %s", b.rows, code, shorten(out, 800))
	}
	var in []string
	for _, line := range strings.Split(out, "\n") {
		if strings.Contains(line, double) && !strings.HasPrefix(line, "verdict") {
			in = append(in, strings.TrimSpace(line[33:57]))
		}
	}
	sound, code, err := b.run(root, dir)
	if err != nil || code != 0 {
		return "", fmt.Errorf("unbroken, the row ended with %d (%v): %s", code, err, shorten(sound, 400))
	}
	return fmt.Sprintf("row %s has two holders in: %s (%s)", b.rows, strings.Join(in, "; "), b.why), nil
}

// overlay writes the edited files and the list of them.
func (b *breakage) overlay(root, dir string) (string, error) {
	replace := map[string]string{}
	for i, e := range b.edits {
		path := filepath.Join(root, e.file)
		from := path
		if replace[path] != "" {
			from = replace[path]
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		if n := strings.Count(string(text), e.old); n != 1 {
			return "", fmt.Errorf("%s holds %d times what is to be broken: %q", e.file, n, e.old)
		}
		replace[path] = filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(replace[path], []byte(strings.Replace(string(text), e.old, e.new, 1)), 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}

// run builds this command and the heirlock command with the flags, and plays the row with them.
func (b *breakage) run(root, dir string, flags ...string) (string, int, error) {
	faults, cli := filepath.Join(dir, "faults"), filepath.Join(dir, "heirlock")
	for _, build := range [][]string{
		append(append([]string{"-C", filepath.Join(root, "bench"), "build"}, flags...), "-o", faults, "./faults"),
		append(append([]string{"-C", root, "build"}, flags...), "-o", cli, "./cmd/heirlock"),
	} {
		if out, err := exec.Command("go", build...).CombinedOutput(); err != nil {
			return "", 0, fmt.Errorf("it does not build: %w: %s", err, out)
		}
	}
	cmd := exec.Command(faults, "-only", "heirlock", "-rows", b.rows, "-heirlock", cli, "-root", root)
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode(), nil
}
