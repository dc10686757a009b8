// Command heirlock runs jobs under a lock that is inherited only from the provably dead, and explains locks.
package main

import (
	"errors"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func main() { os.Exit(execute(os.Args[1:])) }

// execute runs one command line and returns the exit status.
func execute(args []string) int {
	out := &heard{w: os.Stdout}
	root := newRoot(args, out)
	root.SetArgs(args)
	err := root.Execute()
	if out.err != nil {
		err = lostOutput(out.err)
	}
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

// heard is where help, version and completions go: cobra does not look whether anybody got them.
type heard struct {
	w   io.Writer
	err error
}

func (h *heard) Write(p []byte) (n int, err error) {
	if h.err == nil {
		n, h.err = h.w.Write(p)
	}
	return n, h.err
}

type verb struct {
	name string
	make func() *cobra.Command
}

var verbs = []verb{{"run", newRun}, {"exec", newExec}, {"inspect", newInspect}, {"reclaim", newReclaim}, {"identity", newIdentity}, {"journal", newJournal}}

// newRoot makes the commands for a command line. One that begins with a verb needs no other, and a job pays each time for
// every one that is made.
func newRoot(args []string, out io.Writer) *cobra.Command {
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
	root.SetOut(out)
	named := slices.IndexFunc(verbs, func(v verb) bool { return len(args) > 0 && args[0] == v.name })
	for i, v := range verbs {
		if named < 0 || named == i {
			root.AddCommand(v.make())
		}
	}
	root.SetHelpCommand(newHelp())
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError("%v; see %s --help", err, cmd.CommandPath())
	})
	if named < 0 {
		root.InitDefaultCompletionCmd()
		completion, _, _ := root.Find([]string{"completion"})
		completion.Args = cobra.ArbitraryArgs
		completion.RunE = func(*cobra.Command, []string) error { return usageError("name a shell: bash, zsh, fish or powershell") }
	}
	return root
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND...]",
		Short: "show the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			of, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usageError("no command %q", strings.Join(args, " "))
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}

// version is that of the module, as the go command recorded it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
