package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heirlock/heirlock"
)

func newReclaim() *cobra.Command {
	policy := policyValue(heirlock.ReclaimStale)
	var id, machineID string
	var asJSON, durable bool
	cmd := &cobra.Command{
		Use:   "reclaim LOCK",
		Short: "remove a lock whose owner is provably gone",
		Long: `reclaim removes a lock, and takes nothing. Without --id its owner must be provably gone. With --id, as inspect shows it,
it removes exactly that lock or guard although nothing is proven: you answer for its owner's death. It never removes
one whose owner is alive or whose witness is held.

Exit status:
  0 removed or already free, 75 held, 4 unproven; 64 usage, 71 system error, 77 permission denied`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("id") && id == "" {
				return usageError("--id: an empty id names no lock")
			}
			if err := checkMachineID(cmd, machineID); err != nil {
				return err
			}
			d, err := heirlock.Reclaim(args[0], id, heirlock.Options{Policy: heirlock.Policy(policy), MachineID: machineID, Durable: durable})
			return reclaimed(d, err, id, heirlock.Policy(policy), asJSON)
		},
	}
	cmd.Flags().StringVar(&id, "id", "", "remove the lock or guard with this id, proven or not")
	addPolicy(cmd, &policy)
	cmd.Flags().StringVar(&machineID, "machine-id", "", "name of this running kernel, instead of the detected machine id")
	cmd.Flags().BoolVar(&durable, "durable", false, "sync the directory to the disk")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the diagnosis as one JSON object")
	return cmd
}

// reclaimed reports what was removed, or why nothing was.
func reclaimed(d *heirlock.Diagnosis, err error, id string, policy heirlock.Policy, asJSON bool) error {
	var held *heirlock.HeldError
	if errors.As(err, &held) {
		d = &held.Diagnosis
		say("nothing removed: %s", whyNot(held, id, policy))
	} else if err != nil {
		code := statusOf(err)
		if code == exitCantCreate {
			code = exitSystem // nothing is created here
		}
		return &exitError{code, err}
	}
	switch {
	case asJSON || err != nil:
		if err := printDiagnosis(d, asJSON, false); err != nil {
			return &exitError{exitSystem, err}
		}
	default:
		done := fmt.Sprintf("removed %s (%s)\n", printable(d.Path), d.State)
		if d.State == "free" {
			done = fmt.Sprintf("%s is free\n", printable(d.Path))
		}
		if _, err := os.Stdout.WriteString(done); err != nil {
			return lostOutput(err)
		}
	}
	switch {
	case err == nil:
		return nil
	case d.State == "held" || d.Guard != nil && d.Guard.State == "held":
		return &exitError{exitHeld, nil}
	}
	return &exitError{exitUnproven, nil}
}

// whyNot says why a lock was not removed, before its diagnosis is printed.
func whyNot(held *heirlock.HeldError, id string, policy heirlock.Policy) string {
	d := &held.Diagnosis
	path := printable(d.Path)
	switch {
	case d.State == "held":
		return path + " is held"
	case d.Guard != nil:
		return fmt.Sprintf("the guard %s stands in the way, %s", printable(d.Guard.Path), d.Guard.State)
	case id != "" && d.ID == "":
		return path + " has no id: look at it, and remove it by hand"
	case id != "" && id != d.ID:
		return fmt.Sprintf("%s has the id %s", path, d.ID)
	case policy == heirlock.Refuse:
		return "policy refuse removes nothing"
	case id != "": // it is the right one: what stands in the way is in the summary
		return strings.TrimPrefix(held.Error(), heirlock.ErrHeld.Error()+": ")
	}
	return fmt.Sprintf("%s is %s", path, d.State)
}
