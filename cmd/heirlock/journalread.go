package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/heirlock/heirlock/internal/kernel/jobctl"
	"github.com/heirlock/heirlock/journal"
)

// readFlags are the flags of journal read.
type readFlags struct {
	follow  bool
	epoch   string
	since   uint64
	events  bool
	json    bool
	maxLine sizeValue
}

func newJournalRead() *cobra.Command {
	f := &readFlags{maxLine: 16 << 20}
	cmd := &cobra.Command{
		Use:   "read PATH",
		Short: "print the frames of a journal and its generations, oldest first",
		Long: `read prints the frames as they lie, beside a writer or without one. Damage is said on stderr, and the reading goes on
behind it: anomalies are places that hold no frame, gaps are frames that are missing or come again within an epoch.
With --follow it goes on as the journal grows and is rotated, until SIGINT or SIGTERM; each frame is printed once.

` + journalExits,
		Args: onePath,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("epoch") && !isUUID(f.epoch) {
				return usageError("--epoch %q: want the UUID of an epoch", f.epoch)
			}
			if f.events && f.json {
				return usageError("give only one of --events and --json")
			}
			return f.read(args[0])
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.follow, "follow", false, "go on as the journal grows; it need not exist yet")
	fl.StringVar(&f.epoch, "epoch", "", "only frames and gaps of this epoch")
	fl.Uint64Var(&f.since, "since-sequence", 0, "only frames and gaps behind this sequence, of whatever epoch")
	fl.BoolVar(&f.events, "events", false, "print the events alone")
	fl.BoolVar(&f.json, "json", false, "print one JSON object for each frame, anomaly and gap")
	fl.Var(&f.maxLine, "max-line-bytes", "a longer line is an anomaly")
	return cmd
}

// isUUID tells an epoch, which is one, from a mistake.
func isUUID(s string) bool {
	id, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	return err == nil && len(id) == 16 && len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-'
}

// read is the whole verb. A reader of its output that went away ends it, and that is no error.
func (f *readFlags) read(path string) error {
	ctx := context.Background()
	signal.Notify(make(chan os.Signal, 1), jobctl.BrokenPipe)
	if f.follow {
		ctx = untilSignal(ctx)
	}
	out := &frameOutput{readFlags: f, w: bufio.NewWriterSize(os.Stdout, 64<<10)}
	opts := journal.ReadOptions[jsontext.Value]{MaxLineBytes: int(f.maxLine), Generations: true, Follow: f.follow}
	if f.follow { // after each piece: the reading may idle now
		opts.Progress = func(int64) { out.flush() }
	}
	var failed error
	for rec, err := range journal.Read(ctx, []string{path}, opts) {
		if failed = err; err != nil || !out.record(&rec) {
			break
		}
	}
	out.flush()
	switch {
	case out.err != nil && !errors.Is(out.err, syscall.EPIPE):
		return lostOutput(out.err)
	case failed != nil:
		return &exitError{exitNoInput, failed}
	case out.damaged:
		return &exitError{exitDamaged, nil}
	}
	return nil
}

// untilSignal ends with SIGINT or SIGTERM. A second one does what it does to every program: it ends a write that nobody
// reads.
func untilSignal(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-caught
		signal.Stop(caught)
		cancel()
	}()
	return ctx
}

// frameOutput prints records.
type frameOutput struct {
	*readFlags
	w       *bufio.Writer
	line    []byte
	file    string // the last one
	quoted  []byte // as JSON
	damaged bool
	err     error // of the output
}

func (o *frameOutput) flush() {
	if o.err == nil {
		o.err = o.w.Flush()
	}
}

// record prints one record, and reports whether there is somebody to print for.
func (o *frameOutput) record(rec *journal.Record[jsontext.Value]) bool {
	switch {
	case rec.Anomaly != nil:
		o.damaged = true
		o.anomaly(rec.Anomaly)
	case rec.Gap != nil:
		if o.wanted(rec.Gap.Epoch, rec.Gap.Before) {
			o.damaged = true
			o.gap(rec.Gap)
		}
	case o.wanted(rec.Epoch, rec.Sequence):
		o.frame(rec)
	}
	return o.err == nil
}

func (o *frameOutput) wanted(epoch string, sequence uint64) bool {
	return sequence > o.since && (o.epoch == "" || o.epoch == epoch)
}

func (o *frameOutput) frame(rec *journal.Record[jsontext.Value]) {
	text := rec.Raw
	if o.events {
		text = rec.Event
	}
	if o.json {
		o.line = o.located(rec)
		text = o.line
	}
	if _, o.err = o.w.Write(text); o.err == nil {
		o.err = o.w.WriteByte('\n')
	}
}

// located is a frame with its place. The frame is printed as it lies: what may repeat in an event is kept.
func (o *frameOutput) located(rec *journal.Record[jsontext.Value]) []byte {
	if o.quoted == nil || o.file != rec.File {
		o.file = rec.File
		o.quoted, _ = jsontext.AppendQuote(o.quoted[:0], o.file) // a path may be any bytes
	}
	b := append(append(o.line[:0], `{"type":"frame","file":`...), o.quoted...)
	b = strconv.AppendInt(append(b, `,"offset":`...), rec.Offset, 10)
	b = strconv.AppendInt(append(b, `,"line":`...), rec.Line, 10)
	b = strconv.AppendInt(append(b, `,"bytes":`...), rec.Bytes, 10)
	return append(append(append(b, `,"frame":`...), rec.Raw...), '}')
}

func (o *frameOutput) anomaly(a *journal.Anomaly) {
	if o.json {
		o.object(struct {
			Type    string           `json:"type"`
			Anomaly *journal.Anomaly `json:"anomaly"`
		}{"anomaly", a})
		return
	}
	say("%s", anomalyWords(a))
}

func (o *frameOutput) gap(g *journal.Gap) {
	if o.json {
		o.object(struct {
			Type   string `json:"type"`
			Epoch  string `json:"epoch"`
			After  uint64 `json:"after"`
			Before uint64 `json:"before"`
		}{"gap", g.Epoch, g.After, g.Before})
		return
	}
	say("gap in epoch %s: sequence %d comes after %d", g.Epoch, g.Before, g.After)
}

func (o *frameOutput) object(v any) {
	var text []byte
	if text, o.err = json.Marshal(v, jsontext.AllowInvalidUTF8(true)); o.err == nil {
		_, o.err = o.w.Write(append(text, '\n'))
	}
}
