package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heirlock/heirlock"
)

func newInspect() *cobra.Command {
	var asJSON bool
	var machineID string
	timeout := waitValue(10 * time.Second)
	cmd := &cobra.Command{
		Use:   "inspect LOCK...",
		Short: "explain locks: who holds them, on what evidence, who could take them",
		Long: `inspect reads and explains. It takes nothing, changes nothing and waits for no lock.

Exit status:
  0 free, 75 held, 3 stale, 4 unproven or ownerless; of several the worst of 75, 4, 3, 0
  66 or 77 only when nothing could be examined; 64 usage, 71 output that nobody got`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError("name a lock file: heirlock inspect LOCK...")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, paths []string) error {
			if timeout == 0 {
				return usageError("--timeout: want a time above zero")
			}
			if err := checkMachineID(cmd, machineID); err != nil {
				return err
			}
			worst := &worstOf{}
			for _, path := range paths {
				d, err := inspectWithin(time.Duration(timeout), path, heirlock.Options{MachineID: machineID})
				if err != nil {
					worst.failed(err)
					continue
				}
				if err := printDiagnosis(d, asJSON, len(worst.states) > 0); err != nil {
					return lostOutput(err)
				}
				worst.saw(d.State)
			}
			return worst.exit()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object for each lock")
	cmd.Flags().StringVar(&machineID, "machine-id", "", "name of this running kernel, instead of the detected machine id")
	cmd.Flags().Var(&timeout, "timeout", "give up on a file server that does not answer")
	return cmd
}

// inspectWithin leaves an inspection behind that a dead file server holds up.
func inspectWithin(timeout time.Duration, path string, opts heirlock.Options) (*heirlock.Diagnosis, error) {
	type answer struct {
		d   *heirlock.Diagnosis
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		d, err := heirlock.Inspect(path, opts)
		answers <- answer{d, err}
	}()
	select {
	case a := <-answers:
		return a.d, a.err
	case <-time.After(timeout):
		return nil, fmt.Errorf("%s: no answer from its filesystem within %v", path, timeout)
	}
}

func printDiagnosis(d *heirlock.Diagnosis, asJSON, another bool) error {
	if asJSON {
		return printJSON(os.Stdout, d)
	}
	var b strings.Builder
	if another {
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s: %s\n", printable(d.Path), d.State)
	if d.State != "free" {
		indent(&b, d)
	}
	if d.Guard != nil {
		fmt.Fprintf(&b, "  guard %s: %s\n", printable(d.Guard.Path), d.Guard.State)
		indent(&b, d.Guard)
	}
	_, err := os.Stdout.WriteString(b.String())
	return err
}

func indent(b *strings.Builder, d *heirlock.Diagnosis) {
	if d.ID != "" {
		fmt.Fprintf(b, "  id %s\n", printable(d.ID))
	}
	for _, line := range d.Explanation() {
		fmt.Fprintf(b, "  %s\n", line)
	}
}

// worstOf gathers the exit status of several locks: the worst of 75 > 4 > 3 > 0. A lock that could not be examined
// counts as unproven beside others, and decides only when it was alone.
type worstOf struct {
	states  []string
	failure error
}

func (w *worstOf) saw(state string) { w.states = append(w.states, state) }

func (w *worstOf) failed(err error) {
	say("%v", err)
	w.failure = err
}

func (w *worstOf) exit() error {
	if len(w.states) == 0 {
		if errors.Is(w.failure, fs.ErrPermission) {
			return &exitError{exitPermission, nil}
		}
		return &exitError{exitNoInput, nil}
	}
	code, rank := exitOK, 0
	ranks := map[string][2]int{"free": {exitOK, 0}, "stale": {exitStale, 1}, "unproven": {exitUnproven, 2}, "ownerless": {exitUnproven, 2}, "held": {exitHeld, 3}}
	if w.failure != nil {
		code, rank = exitUnproven, 2
	}
	for _, state := range w.states {
		if r := ranks[state]; r[1] > rank {
			code, rank = r[0], r[1]
		}
	}
	if code == exitOK {
		return nil
	}
	return &exitError{code, nil}
}
