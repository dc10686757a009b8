// Command heirlock runs jobs under a lock that is inherited only from the provably dead, and explains locks.
package main

import (
	"errors"
	"os"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"
)

func main() { os.Exit(execute(os.Args[1:])) }

// execute runs one command line and returns the exit status.
func execute(args []string) int {
	root := newRoot(args)
	root.SetArgs(args)
	err := root.Execute()
	var exit *exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		if exit.err != nil {
			say("%v", exit.err)
		}
		return exit.code
	}
	say("%v; see heirlock --help", err) // cobra's own: unknown commands, flags and arguments
	return exitUsage
}

type verb struct {
	name string
	make func() *cobra.Command
}

var verbs = []verb{{"run", newRun}, {"exec", newExec}, {"inspect", newInspect}, {"reclaim", newReclaim}, {"identity", newIdentity}, {"journal", newJournal}}

// newRoot makes the commands for a command line. One that begins with a verb needs no other, and a job pays each time for
// every one that is made.
func newRoot(args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "heirlock",
		Short: "run jobs under a lock that is inherited only from the provably dead",
		Long: `heirlock takes an exclusive lock whose owner is a process instance (boot, process number, start,
namespaces), and takes it over only when kernel evidence proves that instance gone. No age, heartbeat or
timeout ever proves it. Everything else is refused, and the reason is said.

` + exitTable,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return usageError("name a command; see heirlock --help") },
	}
	named := slices.IndexFunc(verbs, func(v verb) bool { return len(args) > 0 && args[0] == v.name })
	for i, v := range verbs {
		if named < 0 || named == i {
			root.AddCommand(v.make())
		}
	}
	return root
}

// version is that of the module, as the go command recorded it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
