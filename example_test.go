package heirlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/heirlock/heirlock"
)

// A daemon of which there is one instance. Without ReclaimStale a lock that a killed daemon left behind would keep the
// next one out as well.
func ExampleTryAcquire() {
	dir := stateDir() // a directory of the daemon's own, as /var/lib/example
	defer os.RemoveAll(dir)

	lock, err := heirlock.TryAcquire(filepath.Join(dir, "lock"), heirlock.Options{Policy: heirlock.ReclaimStale})
	if errors.Is(err, heirlock.ErrHeld) {
		fmt.Println("already running:", err)
		return
	}
	if err != nil {
		log.Panic(err)
	}
	defer func() {
		if err := lock.Release(); err != nil {
			log.Print(err)
		}
	}()

	fmt.Println("serving")
	// Output: serving
}

// A critical section with one deadline for the wait and the work. Its context ends at the deadline, and also if
// somebody removes the lock file; context.Cause tells which.
func ExampleDo() {
	dir := stateDir()
	defer os.RemoveAll(dir)

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := heirlock.Do(ctx, filepath.Join(dir, "lock"), heirlock.Options{}, func(ctx context.Context, _ *heirlock.Lock) error {
		for step := range 3 {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			fmt.Println("step", step)
		}
		return nil
	})
	switch {
	case errors.Is(err, heirlock.ErrHeld):
		fmt.Println("the deadline came before the lock:", err)
	case errors.Is(err, heirlock.ErrLost):
		fmt.Println("somebody else may be at work by now:", err)
	case err != nil:
		log.Panic(err)
	}
	// Output:
	// step 0
	// step 1
	// step 2
}

// A job of cron that waits a minute for the one before it. The label is what a refused one is told.
func ExampleAcquire() {
	dir := stateDir()
	defer os.RemoveAll(dir)

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	lock, err := heirlock.Acquire(ctx, filepath.Join(dir, "lock"), heirlock.Options{Label: "nightly report"})
	if errors.Is(err, heirlock.ErrHeld) {
		log.Print(err) // who has it, since when, and how long this call waited
		return         // in main: os.Exit(75)
	}
	if err != nil {
		log.Panic(err)
	}
	defer func() {
		if err := lock.Release(); err != nil {
			log.Print(err)
		}
	}()

	if lock.Reclaimed != nil {
		log.Printf("the last report did not end in order (%s)", lock.Reclaimed.Identity)
	}
	fmt.Println("report written")
	// Output: report written
}

// A refusal carries the evidence that it rests on.
func ExampleHeldError() {
	dir := stateDir()
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "lock")
	first, err := heirlock.TryAcquire(path, heirlock.Options{Label: "nightly report"})
	if err != nil {
		log.Panic(err)
	}
	defer first.Release()

	_, err = heirlock.TryAcquire(path, heirlock.Options{Policy: heirlock.ReclaimStale})
	var held *heirlock.HeldError
	if !errors.As(err, &held) {
		log.Panic(err)
	}
	if owner := held.Diagnosis.Owner; owner != nil { // nil: what lies there names no owner
		fmt.Println("refused for:", owner.Evidence.Label)
	}
	for _, line := range held.Diagnosis.Explanation() { // every compared field, and a safe next step
		log.Print(line)
	}
	// Output: refused for: nightly report
}

func stateDir() string {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Panic(err)
	}
	return dir
}
