package slogjournal_test

import (
	"context"
	"expvar"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/heirlock/heirlock"
	"github.com/heirlock/heirlock/journal"
	"github.com/heirlock/heirlock/journal/slogjournal"
)

// A service logs to a journal, and publishes the journal's status.
func ExampleNew() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "service.jsonl")
	j, err := journal.Open(path, journal.Options[slogjournal.Event]{
		MaxEventBytes: 64 << 10, MaxPendingItems: 10_000, MaxPendingBytes: 4 << 20, MaxFileBytes: 16 << 20, MaxFiles: 4,
		Lock: heirlock.Options{Policy: heirlock.ReclaimStale},
	})
	if err != nil {
		log.Fatal(err)
	}
	expvar.Publish("journal", j) // at /debug/vars, where the service has expvar's handler

	withoutTime := &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{} // for this example only: its output is compared
		}
		return a
	}}
	logger := slog.New(slogjournal.New(j, withoutTime))
	logger.With("job", "nightly").Info("done", "rows", 12)

	if err := j.Close(context.Background()); err != nil {
		log.Fatal(err)
	}
	for rec, err := range journal.Read(context.Background(), []string{path}, journal.ReadOptions[slogjournal.Event]{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(rec.Sequence, string(rec.Event))
	}
	fmt.Println(strings.Contains(expvar.Get("journal").String(), `"written":1`))
	// Output:
	// 1 {"level":"INFO","msg":"done","job":"nightly","rows":12}
	// true
}
