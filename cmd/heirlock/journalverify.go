package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/heirlock/heirlock/internal/kernel/jobctl"
	"github.com/heirlock/heirlock/journal"
)

func newJournalVerify() *cobra.Command {
	var asJSON bool
	maxLine := sizeValue(16 << 20)
	cmd := &cobra.Command{
		Use:   "verify PATH...",
		Short: "count the frames, anomalies and gaps of journals",
		Long: `verify reads every PATH with its generations, as read does, and prints one report for all of them. A PATH that is a
generation of another one is not counted again, and its lock is passed over, so that verify log.jsonl* works.

` + journalExits,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError("name a journal: heirlock journal verify PATH...")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, paths []string) error {
			signal.Notify(make(chan os.Signal, 1), jobctl.BrokenPipe)
			paths = journals(paths)
			report, err := verifyShown(paths, int(maxLine), asJSON)
			if err != nil {
				return &exitError{exitNoInput, err}
			}
			for _, file := range passedOver(paths) {
				say("%s was passed over: it has the number of a generation, but lies behind many missing numbers and begins with no frame", printable(file))
			}
			if err := printReport(&report, asJSON); err != nil && !errors.Is(err, syscall.EPIPE) {
				return lostOutput(err)
			}
			if report.Anomalies > 0 || report.Gaps > 0 {
				return &exitError{exitDamaged, nil}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as one JSON object")
	cmd.Flags().Var(&maxLine, "max-line-bytes", "a longer line is an anomaly")
	return cmd
}

// journals leaves out the paths that another one brings along as a generation, those that are given again, and what only
// lies beside a journal that is given. Shorter names go first: what is a generation itself brings nothing along, so that
// the journal x.1.1 is not lost between x and x.1.
func journals(paths []string) []string {
	names := absolutes(paths)
	given, brought := map[string]bool{}, map[string]bool{}
	for _, name := range slices.SortedStableFunc(slices.Values(names), func(a, b string) int { return len(a) - len(b) }) {
		if given[name] = true; brought[name] {
			continue
		}
		files, _ := journal.Files(name)
		for _, file := range files {
			brought[file] = brought[file] || file != name
		}
	}
	var left []string
	for i, name := range names {
		if !brought[name] && !given[besides(name)] {
			left = append(left, paths[i])
		}
		brought[name] = true
	}
	return left
}

// absolutes are the paths, absolute where they can be: what is wrong with one, the reading will say.
func absolutes(paths []string) []string {
	names := make([]string, len(paths))
	for i, path := range paths {
		var err error
		if names[i], err = absolute(path); err != nil {
			names[i] = path
		}
	}
	return names
}

// passedOver are the files that have the number of a generation, and neither are one to a reader nor are given.
func passedOver(paths []string) (over []string) {
	names := absolutes(paths)
	for _, name := range names {
		beside, _ := os.ReadDir(filepath.Dir(name)) // before the files: what a rotation makes meanwhile is none of these
		files, err := journal.Files(name)
		for _, b := range beside {
			at := filepath.Join(filepath.Dir(name), b.Name())
			if err == nil && isGeneration(b.Name(), filepath.Base(name)) && !slices.Contains(files, at) && !slices.Contains(names, at) {
				over = append(over, at)
			}
		}
	}
	return over
}

// isGeneration reports whether a name is that of a journal with the number of a generation behind it.
func isGeneration(name, of string) bool {
	digits, ok := strings.CutPrefix(name, of+".")
	n, err := strconv.ParseUint(digits, 10, 64)
	return ok && err == nil && n > 0 && len(digits) <= 6 && digits == strconv.FormatUint(n, 10)
}

// besides is the journal that a file would belong to, by its name, without being of it: as its lock, the guard of that, or
// as something that was in the way. It is empty if there is none.
func besides(name string) string {
	if i := strings.LastIndex(name, ".quarantined-"); i >= 0 {
		return name[:i]
	}
	journal, ok := strings.CutSuffix(strings.TrimSuffix(name, ".reclaim"), ".lock")
	if !ok {
		return ""
	}
	return journal
}

// verifyShown is Verify that shows on a terminal how far it is.
func verifyShown(paths []string, maxLine int, quiet bool) (journal.Report, error) {
	total, done := int64(0), int64(0)
	for _, path := range paths {
		files, _ := journal.Files(path)
		for _, file := range files {
			if info, err := os.Stat(file); err == nil {
				total += info.Size()
			}
		}
	}
	live := liveLine{quiet: quiet, text: func() string {
		return fmt.Sprintf("verifying: %d of %d MiB, %d %%", done>>20, total>>20, min(100, done*100/max(1, total)))
	}}
	live.start()
	defer live.clear()
	return journal.Verify(context.Background(), paths, journal.ReadOptions[jsontext.Value]{
		MaxLineBytes: maxLine, Generations: true,
		Progress: func(bytes int64) {
			done = bytes
			select {
			case <-live.tick:
				live.show()
			default:
			}
		},
	})
}

func printReport(r *journal.Report, asJSON bool) error {
	if asJSON {
		return printJSON(os.Stdout, r)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "files %d, bytes %d, frames %d, epochs %d, anomalies %d, gaps %d\n", r.Files, r.Bytes, r.Frames, r.Epochs, r.Anomalies, r.Gaps)
	for _, reason := range slices.Sorted(maps.Keys(r.Reasons)) {
		fmt.Fprintf(&b, "  %s: %d\n", reason, r.Reasons[reason])
	}
	if r.Anomalies > 0 {
		fmt.Fprintf(&b, "  skipped: %d bytes\n  first: %s\n", r.SkippedBytes, anomalyWords(r.First))
	}
	if r.Anomalies > 1 {
		fmt.Fprintf(&b, "  last: %s\n", anomalyWords(r.Last))
	}
	_, err := os.Stdout.WriteString(b.String())
	return err
}

// anomalyWords is an anomaly in one line.
func anomalyWords(a *journal.Anomaly) string {
	ended := ""
	if !a.Terminated {
		ended = ", not terminated"
	}
	return fmt.Sprintf("%s: line %d, offset %d: %s, %s%s, %d bytes skipped", printable(a.File), a.Line, a.Offset, a.Reason, a.Position, ended, a.SkippedBytes)
}
