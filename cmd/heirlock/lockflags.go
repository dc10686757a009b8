package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heirlock/heirlock"
	"github.com/heirlock/heirlock/internal/kernel/jobctl"
)

// lockFlags are the flags of run and exec. Where flock(1) has the same meaning, they have its names.
type lockFlags struct {
	policy     policyValue
	mode       modeValue
	wait       waitValue
	nonblock   bool
	conflict   exitValue
	command    string
	noInherit  bool
	noFork     bool
	label      string
	machineID  string
	grace      waitValue
	durable    bool
	quiet      bool
	verbose    bool
	json       bool
	flags      *pflag.FlagSet
	lost       bool     // the lock was lost while the command ran
	executable string   // of the command, looked up before anything is taken
	argv       []string // of the command
}

func addLockFlags(cmd *cobra.Command) *lockFlags {
	f := &lockFlags{policy: policyValue(heirlock.ReclaimStale), mode: 0o600, conflict: exitHeld, flags: cmd.Flags()}
	fl := cmd.Flags()
	fl.BoolVarP(&f.nonblock, "nonblock", "n", false, "do not wait (the same as -w 0)")
	fl.VarP(&f.wait, "wait", "w", "wait at most this long; a bare number is seconds; without -n or -w wait for ever")
	fl.VarP(&f.conflict, "conflict-exit-code", "E", "exit status when the lock is not taken")
	fl.StringVarP(&f.command, "command", "c", "", "run this line with /bin/sh instead of CMD")
	fl.BoolVar(&f.noInherit, "no-inherit", false, "do not hand the lock to the command: if run is killed, nothing that the command started keeps the lock")
	fl.BoolVarP(&f.noInherit, "close", "o", false, "the same as --no-inherit")
	fl.BoolP("exclusive", "x", true, "the only kind of lock there is")
	fl.BoolP("exclusive-too", "e", true, "the same")
	_, _ = fl.MarkHidden("exclusive"), fl.MarkHidden("exclusive-too")
	fl.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if long, ok := map[string]string{"timeout": "wait", "nb": "nonblock"}[name]; ok { // of flock(1)
			name = long
		}
		return pflag.NormalizedName(name)
	})
	fl.BoolVarP(&f.noFork, "no-fork", "F", false, "for those who know flock(1): exec always becomes the command, run never does")
	addPolicy(cmd, &f.policy)
	fl.Var(&f.mode, "mode", "exact mode of the lock file, octal")
	fl.StringVar(&f.label, "label", "", "text for whoever is refused, kept in the record")
	fl.StringVar(&f.machineID, "machine-id", "", "name of this running kernel, instead of the detected machine id")
	fl.Var(&f.grace, "ownerless-grace", "remove a file without a record, once this wait has seen it unchanged for so long (otherwise never)")
	fl.BoolVar(&f.durable, "durable", false, "sync the lock file and its directory to the disk")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "say nothing while waiting or when refused")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "say when a wait begins, and when the lock was taken, on what evidence")
	fl.BoolVar(&f.json, "json", false, "print a refusal as one JSON object on stderr")
	return f
}

// parse checks what flags alone cannot, and finds the command.
func (f *lockFlags) parse(cmd *cobra.Command, args []string) (lock string, err error) {
	dash := cmd.ArgsLenAtDash()
	switch {
	case f.noFork && cmd.Name() == "run":
		return "", usageError("-F, --no-fork: use heirlock exec, which becomes the command")
	case len(args) == 0 || dash == 0:
		return "", usageError("name the lock file: heirlock %s LOCK -- CMD", cmd.Name())
	case f.flags.Changed("command"):
		if len(args) != 1 {
			return "", usageError("-c takes the place of CMD: give only one of them")
		}
		f.argv = []string{"/bin/sh", "-c", f.command}
	case dash != 1:
		return "", usageError("put -- between the lock file and the command: heirlock %s LOCK -- CMD", cmd.Name())
	case len(args) == 1:
		return "", usageError("name the command after --")
	default:
		f.argv = args[1:]
	}
	if f.nonblock && f.flags.Changed("wait") {
		return "", usageError("give only one of -n and -w")
	}
	if f.zeroWait() && f.flags.Changed("ownerless-grace") {
		return "", usageError("--ownerless-grace needs a wait: it is this command that must see the file unchanged")
	}
	if err := checkMachineID(cmd, f.machineID); err != nil {
		return "", err
	}
	f.noInherit = f.noInherit || !jobctl.Inherits
	if f.executable, err = lookUp(f.argv[0]); err != nil {
		return "", err
	}
	return args[0], nil
}

func (f *lockFlags) zeroWait() bool { return f.nonblock || f.flags.Changed("wait") && f.wait == 0 }

func (f *lockFlags) options() heirlock.Options {
	o := heirlock.Options{
		Policy: heirlock.Policy(f.policy), Mode: fs.FileMode(f.mode), Label: f.label, MachineID: f.machineID,
		Durable: f.durable, HandOn: !f.noInherit,
	}
	if f.flags.Changed("ownerless-grace") {
		grace := time.Duration(f.grace)
		o.OwnerlessGrace = &grace
	}
	return o
}

// waitValue is a duration as flock(1) takes it: "1.5" is seconds, "2m" is a Go duration.
type waitValue time.Duration

func (w *waitValue) String() string {
	if *w == 0 {
		return "" // no default to print
	}
	return time.Duration(*w).String()
}

func (w *waitValue) Type() string { return "duration" }

func (w *waitValue) Set(s string) error {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil {
		if !(seconds >= 0 && seconds < math.MaxInt64/float64(time.Second)) {
			return errDuration
		}
		*w = waitValue(seconds * float64(time.Second))
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return errDuration
	}
	*w = waitValue(d)
	return nil
}

var errDuration = errors.New("want seconds, or a duration like 1m30s")

// checkMachineID refuses what is a mistake of a script or a manifest, and would give one name to many machines.
func checkMachineID(cmd *cobra.Command, id string) error {
	if cmd.Flags().Changed("machine-id") && (strings.TrimSpace(id) == "" || strings.Contains(id, "$")) {
		return usageError("--machine-id %q: want the name of this one running kernel", id)
	}
	return nil
}

// exitValue is an exit status.
type exitValue uint8

func (e *exitValue) String() string { return strconv.Itoa(int(*e)) }
func (e *exitValue) Type() string   { return "status" }

func (e *exitValue) Set(s string) error {
	v, err := strconv.ParseUint(s, 10, 8)
	if err != nil {
		return errors.New("want an exit status, 0 to 255")
	}
	*e = exitValue(v)
	return nil
}

type policyValue heirlock.Policy

func addPolicy(cmd *cobra.Command, p *policyValue) {
	cmd.Flags().Var(p, "policy", "refuse, reclaim-stale or reclaim-released")
	names := []string{string(heirlock.Refuse), string(heirlock.ReclaimStale), string(heirlock.ReclaimReleased)}
	_ = cmd.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

func (p *policyValue) String() string { return string(*p) }
func (p *policyValue) Type() string   { return "policy" }

func (p *policyValue) Set(s string) error {
	switch heirlock.Policy(s) {
	case heirlock.Refuse, heirlock.ReclaimStale, heirlock.ReclaimReleased:
		*p = policyValue(s)
		return nil
	}
	return fmt.Errorf("want refuse, reclaim-stale or reclaim-released")
}

type modeValue fs.FileMode

func (m *modeValue) String() string { return fmt.Sprintf("%#o", uint32(*m)) }
func (m *modeValue) Type() string   { return "octal" }

func (m *modeValue) Set(s string) error {
	v, err := strconv.ParseUint(s, 8, 32)
	if err != nil || v&^0o777 != 0 || v&0o400 == 0 {
		return fmt.Errorf("want an octal mode that lets the owner read, as 0600")
	}
	*m = modeValue(v)
	return nil
}
