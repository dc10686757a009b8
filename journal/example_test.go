package journal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/heirlock/heirlock"
	"github.com/heirlock/heirlock/journal"
)

// A service leaves evidence about itself, and inherits the journal from a predecessor that was killed.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "journal-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "service.jsonl")

	type started struct {
		Version string `json:"version"`
	}
	ctx := context.Background()
	j, err := journal.Open(path, journal.Options[started]{
		MaxEventBytes: 64 << 10, MaxPendingItems: 10_000, MaxPendingBytes: 4 << 20, MaxFileBytes: 16 << 20, MaxFiles: 8,
		Lock:      heirlock.Options{Policy: heirlock.ReclaimStale},
		OnFailure: func(cause error) { fmt.Fprintln(os.Stderr, cause) },
	})
	if err != nil {
		panic(err) // a *heirlock.HeldError in it says who has the journal
	}
	if _, err := j.Submit(started{Version: "1.2.3"}); errors.Is(err, journal.ErrByteCapacity) {
		fmt.Println("the disk is slower than the events")
	}
	if err := j.Close(ctx); err != nil {
		panic(err)
	}

	for rec, err := range journal.Read(ctx, []string{path}, journal.ReadOptions[started]{Generations: true}) {
		if err != nil {
			panic(err)
		}
		fmt.Println(rec.Sequence, rec.Event.Version)
	}
	// Output: 1 1.2.3
}
