package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/heirlock/heirlock"
)

// The voice of the tool: data to stdout, words to stderr, one line each, in lower case, beginning with the program's
// name. With --json nothing but JSON is printed on the stream that the JSON goes to. No colour is ever used.

// Exit statuses, sysexits.h where it has one.
const (
	exitOK         = 0
	exitDamaged    = 1
	exitStale      = 3
	exitUnproven   = 4
	exitUsage      = 64
	exitRefused    = 65
	exitNoInput    = 66
	exitLost       = 70
	exitSystem     = 71
	exitCantCreate = 73
	exitHeld       = 75
	exitPermission = 77
	exitCannotRun  = 126
	exitNotFound   = 127
	exitSignal     = 128
)

// exitTable is for the page of heirlock; those of its verbs have their own lines.
const exitTable = `Exit status:
  run, exec   the command's; 128+N when signal N ended it; 126 not executable, 127 not found (nothing taken)
  75          not taken: held, unprovable, or the wait ran out (-E changes it for run and exec)
  64          usage        71  system error
  70          run: the lock was lost while the command ran, and the command ended with 0
  73          the lock file cannot be created
  77          permission denied
  inspect     0 free, 75 held, 3 stale, 4 unproven or ownerless; of several the worst of 75, 4, 3, 0;
              66 or 77 only when nothing could be examined
  reclaim     0 removed or already free, 75 held, 4 unproven
  journal     see heirlock journal --help`

const lockExits = `Exit status:
  the command's; 128+N when signal N ended it; 126 not executable, 127 not found (nothing taken)
  75   not taken: held, unprovable, or the wait ran out (-E changes it)
  64   usage
  71   system error
  73   the lock file cannot be created
  77   permission denied`

const environmentTable = `Environment of the command:
  HEIRLOCK_PATH          absolute path of the lock file
  HEIRLOCK_ACQUISITION   the id of this acquisition, as inspect shows it
  HEIRLOCK_HELD          this and all acquisitions above it, separated by commas; taking one of these again is refused
  HEIRLOCK_FD            descriptor of the lock file, 10 or above; not set with --no-inherit

Files:
  LOCK                   the lock, while it is held, and after an owner that released nothing
  LOCK.reclaim           its guard, while a dead owner's lock is removed`

// exitError is an exit status, and what to say before it; nothing if err is nil.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// lostOutput is the error of output that nobody got.
func lostOutput(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitSystem, err}
}

func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

func say(format string, args ...any) {
	fmt.Fprintln(os.Stderr, "heirlock: "+printable(fmt.Sprintf(format, args...)))
}

// printable keeps file names and the text of records from steering a terminal or reordering what is read.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// statusOf is the exit status of an error about taking or removing a lock.
func statusOf(err error) int {
	var errno syscall.Errno
	switch {
	case errors.Is(err, heirlock.ErrHeld):
		return exitHeld
	case errors.Is(err, fs.ErrPermission):
		return exitPermission
	case errors.Is(err, errors.ErrUnsupported):
		return exitSystem
	case !errors.As(err, &errno):
		return exitCantCreate
	case errno == syscall.EINVAL:
		return exitUsage
	case errno == syscall.EMFILE || errno == syscall.ENFILE || errno == syscall.ENOMEM || errno == syscall.EIO:
		return exitSystem
	}
	return exitCantCreate
}

// printJSON writes one value as one line.
func printJSON(w io.Writer, v any) error {
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true)) // a path may be any bytes
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}
