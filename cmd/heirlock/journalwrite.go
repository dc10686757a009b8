package main

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/heirlock/heirlock"
	"github.com/heirlock/heirlock/internal/kernel/jobctl"
	"github.com/heirlock/heirlock/journal"
)

// writeFlags are the flags of journal write.
type writeFlags struct {
	maxEvent        sizeValue
	maxPending      sizeValue
	maxPendingItems int
	maxFile         sizeValue
	maxFiles        int
	policy          policyValue
	mode            modeValue
	machineID       string
	raw             bool
	schema          string
}

func newJournalWrite() *cobra.Command {
	f := &writeFlags{maxPending: 4 << 20, maxFile: 16 << 20, policy: policyValue(heirlock.Refuse), mode: 0o600}
	cmd := &cobra.Command{
		Use:   "write PATH",
		Short: "append the lines of standard input to a journal",
		Long: `write reads lines of JSON and appends each as a frame, in order, waiting for room where the bounds are exhausted. A line
that is refused is said on stderr with its number, and the next one goes on. At the end of input, SIGTERM or SIGINT it
finishes the lines that it has read, drains, closes, and prints the status of the journal as one line of JSON on stderr.
SIGHUP is ignored. Numbers keep their text.

` + journalExits,
		Args: onePath,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkMachineID(cmd, f.machineID); err != nil {
				return err
			}
			if cmd.Flags().Changed("schema") && f.schema == "" {
				return usageError("--schema: want the name of a file")
			}
			return f.write(args[0])
		},
	}
	fl := cmd.Flags()
	fl.Var(&f.maxEvent, "max-event-bytes", "of one line, and of one event (default: 1MiB, or what fits the file and the pending bytes)")
	fl.IntVar(&f.maxPendingItems, "max-pending-items", 1<<16, "lines that are read and not written yet")
	fl.Var(&f.maxPending, "max-pending-bytes", "of the frames that are not written yet")
	fl.Var(&f.maxFile, "max-file-bytes", "of one file")
	fl.IntVar(&f.maxFiles, "max-files", 8, "the file and its generations")
	addPolicy(cmd, &f.policy)
	fl.Var(&f.mode, "mode", "exact mode of a new file, octal; one that exists hands its own on")
	fl.StringVar(&f.machineID, "machine-id", "", "name of this running kernel, instead of the detected machine id")
	fl.BoolVar(&f.raw, "raw", false, `take any line as {"line":TEXT}; bytes that are not UTF-8 become U+FFFD, and add "invalidUtf8":true`)
	fl.StringVar(&f.schema, "schema", "", "refuse events that do not match the JSON Schema in this file")
	return cmd
}

// largestEvent is the most that a journal takes as MaxEventBytes.
const largestEvent = 1 << 30

// largestFrame is a frame without its event, as long as it gets.
const largestFrame = `{"schemaVersion":1,"epoch":"00000000-0000-0000-0000-000000000000","sequence":9007199254740991,"event":}` + "\n"

// sink is a journal, whatever its events are.
type sink struct {
	submit func(line []byte) error // waits for room
	close  func(context.Context) error
	status func() journal.Status
}

// opener makes sure of the flags, and returns what opens the journal. Its failure closes the channel.
func (f *writeFlags) opener(failed chan struct{}) (func(path string) (*sink, error), error) {
	if f.maxEvent == 0 {
		f.maxEvent = min(1<<20, max(1, min(f.maxFile, f.maxPending)-sizeValue(len(largestFrame))))
	}
	if f.maxEvent > largestEvent {
		most := sizeValue(largestEvent)
		return nil, usageError("--max-event-bytes: at most %s", &most)
	}
	if f.maxFiles < 1 {
		return nil, usageError("--max-files: at least 1")
	}
	if f.maxPendingItems < 1 {
		return nil, usageError("--max-pending-items: at least 1")
	}
	var validate func(jsontext.Value) error
	if f.schema != "" {
		var err error
		if validate, err = schemaValidator(f.schema); err != nil {
			return nil, err
		}
	}
	if !f.raw {
		return opening(f, failed, validate, func(line []byte) jsontext.Value { return line }), nil
	}
	var raw func(rawEvent) error
	if validate != nil {
		raw = func(e rawEvent) error {
			text, err := json.Marshal(e)
			if err != nil {
				return err
			}
			return validate(text)
		}
	}
	return opening(f, failed, raw, newRawEvent), nil
}

func opening[T any](f *writeFlags, failed chan struct{}, validate func(T) error, event func(line []byte) T) func(path string) (*sink, error) {
	o := journal.Options[T]{
		MaxEventBytes: int(f.maxEvent), MaxPendingItems: f.maxPendingItems, MaxPendingBytes: int64(f.maxPending),
		MaxFileBytes: int64(f.maxFile), MaxFiles: f.maxFiles, Mode: fs.FileMode(f.mode),
		Lock:     heirlock.Options{Policy: heirlock.Policy(f.policy), MachineID: f.machineID},
		Validate: validate, OnFailure: func(error) { close(failed) },
	}
	return func(path string) (*sink, error) {
		j, err := journal.Open(path, o)
		if err != nil {
			return nil, err
		}
		submit := func(line []byte) error {
			_, err := j.SubmitWait(context.Background(), event(line))
			return err
		}
		return &sink{submit, j.Close, j.Status}, nil
	}
}

// write is the whole verb.
func (f *writeFlags) write(path string) error {
	path, err := absolute(path)
	if err != nil {
		return err
	}
	failed := make(chan struct{})
	open, err := f.opener(failed)
	if err != nil {
		return err
	}
	signals := endSignals() // from before the lock is taken: it must not stay behind
	ends, err := endingBy(signals)
	if err != nil {
		return &exitError{exitSystem, err}
	}
	j, err := open(path)
	if err != nil {
		signal.Stop(signals) // nothing is left to finish
		return &exitError{statusOf(err), err}
	}
	in := &intake{sink: j, words: newWords(ends, failed), cutter: cutter{most: int(f.maxEvent)}, raw: f.raw}
	return in.finish(in.take(readChunks(os.Stdin, ends)))
}

// endSignals are those that end the input. One that the caller had ignored stays ignored; that of a terminal that went
// away always is, and words that nobody reads end nothing.
func endSignals() chan os.Signal {
	caught := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(s) {
			signal.Notify(caught, s)
		}
	}
	signal.Ignore(syscall.SIGHUP)
	signal.Notify(make(chan os.Signal, 1), jobctl.BrokenPipe)
	return caught
}

// finish drains and closes, says how it went, and is the exit status.
func (in *intake) finish(read error) error {
	closed := in.sink.close(context.Background())
	st := in.status()
	w := in.words
	w.left = wordsPatience
	if w.dropped > 0 {
		w.say("%d words were dropped: nobody read them", w.dropped)
	}
	if read != nil {
		w.say("standard input: %v", read)
	}
	failure := st.LastFailure
	if failure != nil {
		w.say("the journal failed, phase %s: %s", failure.Phase, failure.Cause)
	} else if closed != nil {
		w.say("%v", closed)
	}
	var summary bytes.Buffer
	if err := printJSON(&summary, st); err != nil {
		return &exitError{exitSystem, err}
	}
	w.put(summary.Bytes())
	w.end()
	switch {
	case failure != nil || closed != nil || read != nil:
		return &exitError{exitSystem, nil}
	case st.Refused > 0:
		return &exitError{exitRefused, nil}
	}
	return nil
}
