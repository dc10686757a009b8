package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

const journalExits = `Exit status:
  write       0 every line accepted and written; 65 a line was refused; 71 the journal failed, or the system
              75 not opened: the lock was not taken, or the file has another writer
              64 usage   66 the schema cannot be read   73 cannot be opened   77 permission denied
  read        0 clean, 1 damaged (anomalies, gaps), 66 cannot be read, 64 usage, 71 output that nobody got
  verify      the same`

func newJournal() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "journal",
		Short: "write, read and verify a bounded diagnostic journal",
		Long: `A journal is the file PATH and its generations PATH.1 (the newest) and up: frames in order, one line of JSON each,
inside bounds that are declared. One process at a time writes it, under the lock PATH.lock.

` + journalExits,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usageError("name what to do: heirlock journal write, read or verify")
		},
	}
	cmd.AddCommand(newJournalWrite(), newJournalRead(), newJournalVerify())
	return cmd
}

// onePath takes the path of one journal.
func onePath(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError("name one journal: PATH")
	}
	return nil
}

// absolute is the absolute and normal path of a file. A parent that is not both already is resolved first: a/.. is not .
// where a is a link.
func absolute(path string) (string, error) {
	if filepath.IsAbs(path) && filepath.Clean(path) == path {
		return path, nil
	}
	dir, name := filepath.Split(path)
	if name == "" || name == "." || name == ".." {
		return "", usageError("%q names no file", path)
	}
	if !filepath.IsAbs(path) {
		here, err := os.Getwd()
		if err != nil {
			return "", &exitError{exitSystem, err}
		}
		dir = here + string(filepath.Separator) + dir
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", &exitError{statusOf(err), err}
	}
	return filepath.Join(dir, name), nil
}

// sizeValue is a number of bytes, as 16MiB, 64KiB, 10kB or 4096.
type sizeValue int64

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

func (s *sizeValue) String() string {
	n := int64(*s)
	if n == 0 {
		return "" // no default to print
	}
	for i := 3; i >= 0; i-- {
		if u := sizeUnits[i]; n%u.bytes == 0 {
			return fmt.Sprintf("%d%s", n/u.bytes, u.suffix)
		}
	}
	return strconv.FormatInt(n, 10)
}

func (s *sizeValue) Type() string { return "size" }

func (s *sizeValue) Set(text string) error {
	unit := int64(1)
	for _, u := range sizeUnits {
		if number, ok := strings.CutSuffix(text, u.suffix); ok {
			text, unit = number, u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n == 0 || int64(n) > math.MaxInt64/unit {
		return errSize
	}
	*s = sizeValue(int64(n) * unit)
	return nil
}

var errSize = errors.New("want a number of bytes above zero, as 16MiB, 64KiB, 10kB or 4096")
