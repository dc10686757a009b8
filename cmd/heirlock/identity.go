package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heirlock/heirlock"
	"github.com/heirlock/heirlock/process"
)

func newIdentity() *cobra.Command {
	var asJSON bool
	var dir string
	cmd := &cobra.Command{
		Use:   "identity [PID...]",
		Short: "show this machine's evidence, and what is missing",
		Long: `identity shows what a record would say about this process, or about the processes named, and what of it could not be
measured. With --dir it also makes, names and removes one hidden file there to see what its filesystem can do.

Exit status:
  0, also for a number that no process has; 64 usage, 71 output that nobody got; with --dir also 71, 73 and 77`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("dir") && dir == "" {
				return usageError("--dir: want the name of a directory")
			}
			report, err := identify(args)
			if err != nil {
				return err
			}
			if dir != "" {
				if err := report.examine(dir); err != nil {
					return &exitError{statusOf(err), err}
				}
			}
			if asJSON {
				return lostOutput(printJSON(os.Stdout, report))
			}
			var text strings.Builder
			report.print(&text)
			_, err = os.Stdout.WriteString(text.String())
			return lostOutput(err)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().StringVar(&dir, "dir", "", "also examine the filesystem of this directory")
	return cmd
}

type identityReport struct {
	Host      string           `json:"host"`
	Machine   *string          `json:"machine"`
	Source    *string          `json:"machineSource"`
	Missing   []string         `json:"missing"`
	Processes []processReport  `json:"processes"`
	Directory *directoryReport `json:"directory,omitzero"`
}

type processReport struct {
	PID      int             `json:"pid"`
	Presence string          `json:"presence"`
	Instance *instanceReport `json:"process"`
	PidfdID  *string         `json:"pidfdId"`
	Lives    *string         `json:"livesIn"` // its own namespaces, which may be others than the caller's
	Missing  []string        `json:"missing"`
}

type instanceReport struct {
	Platform  string `json:"platform"`
	BootID    string `json:"bootId"`
	Namespace string `json:"namespace"`
	StartID   string `json:"startId"`
}

type directoryReport struct {
	Path       string  `json:"path"`
	Filesystem string  `json:"type"`
	Scope      string  `json:"scope"`
	Birth      *string `json:"birth"`
	Flock      bool    `json:"flock"`
	Cause      *string `json:"cause"`
}

func identify(args []string) (*identityReport, error) {
	r := &identityReport{Missing: []string{}}
	r.Host, _ = os.Hostname()
	if id, source, err := process.Machine(); err == nil {
		r.Machine, r.Source = &id, &source
	} else {
		r.Missing = append(r.Missing, lines("machine id: ", err)...)
	}
	if len(args) == 0 {
		o, err := process.Self()
		r.Processes = append(r.Processes, report(os.Getpid(), o, err))
	}
	for _, arg := range args {
		pid, err := strconv.Atoi(arg)
		if err != nil || pid < 1 {
			return nil, usageError("not a process number: %s", arg)
		}
		o, err := process.Observe(pid)
		r.Processes = append(r.Processes, report(pid, o, err))
	}
	return r, nil
}

func report(pid int, o process.Observation, err error) processReport {
	p := processReport{PID: pid, Presence: string(o.Presence), Missing: []string{}}
	if i := o.Instance; i.Valid() {
		p.Instance = &instanceReport{i.Platform, i.BootID, i.Namespace, i.StartID}
	}
	if o.PidfdID != "" {
		p.PidfdID = &o.PidfdID
	}
	if err != nil {
		p.Missing = append(p.Missing, lines("", err)...)
	}
	if o.Presence == process.Running {
		if ns, err := process.Namespaces(pid); err == nil {
			p.Lives = &ns
		} else {
			p.Missing = append(p.Missing, lines("namespaces: ", err)...)
		}
	}
	return p
}

func lines(prefix string, err error) []string {
	out := strings.Split(err.Error(), "\n")
	for i := range out {
		out[i] = prefix + out[i]
	}
	return out
}

func (r *identityReport) examine(dir string) error {
	c, err := heirlock.Examine(dir)
	if err != nil {
		return err
	}
	d := &directoryReport{Path: dir, Filesystem: c.Filesystem, Scope: c.Scope, Flock: c.Flock}
	if c.Birth != "" {
		d.Birth = &c.Birth
	}
	if c.Cause != nil {
		text := c.Cause.Error()
		d.Cause = &text
	}
	r.Directory = d
	return nil
}

func (r *identityReport) print(w io.Writer) {
	fmt.Fprintf(w, "host        %s\nmachine id  %s (%s)\n", r.Host, or(r.Machine), or(r.Source))
	printMissing(w, r.Missing)
	for _, p := range r.Processes {
		fmt.Fprintf(w, "process     %d (%s)\n", p.PID, p.Presence)
		if i := p.Instance; i != nil {
			fmt.Fprintf(w, "  platform  %s\n  boot id   %s\n  start     %s\n  seen from %s\n", i.Platform, i.BootID, i.StartID, i.Namespace)
		}
		fmt.Fprintf(w, "  lives in  %s\n  pidfd id  %s\n", or(p.Lives), or(p.PidfdID))
		printMissing(w, p.Missing)
	}
	if d := r.Directory; d != nil {
		fmt.Fprintf(w, "directory   %s\n  type      %s (%s)\n  birth     %s\n  flock     %v\n", d.Path, d.Filesystem, d.Scope, or(d.Birth), d.Flock)
		if d.Cause != nil {
			printMissing(w, []string{*d.Cause})
		}
	}
}

func printMissing(w io.Writer, missing []string) {
	for _, m := range missing {
		fmt.Fprintf(w, "  missing   %s\n", m)
	}
}

func or(s *string) string {
	if s == nil {
		return "none"
	}
	return *s
}
