package heirlock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A waiter's file is made before the name is free; what it says when it has the name is the time of the link, and it is
// read back as the owner that Acquire returned.
func TestEarlyRecordIsBroughtUpToDate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	first, err := TryAcquire(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	tt, err := resolve(path, Options{Policy: ReclaimStale, Label: `a "label"`})
	if err != nil {
		t.Fatal(err)
	}
	tt.waiting = true
	tt.bearEarly(tt.name)
	if tt.early[tt.name] == nil {
		t.Skip("no unnamed files here")
	}
	tt.early[tt.name].h.rec.AcquiredAt = "1999-01-01T00:00:00.000Z"
	if _, err := tt.create(tt.name); err != ErrHeld || tt.early[tt.name] == nil {
		t.Fatalf("%v, early %v; want ErrHeld and the file kept", err, tt.early)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	before := time.Now().Add(-time.Second)
	h, err := tt.create(tt.name)
	if err != nil {
		t.Fatal(err)
	}
	defer tt.remove(&h)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := appendRecord(nil, &h.rec)
	if err != nil || string(data) != string(want)+"\n" {
		t.Errorf("file %s\nwant %s (%v)", data, want, err)
	}
	at, err := time.Parse(acquiredLayout, h.rec.AcquiredAt)
	if err != nil || at.Before(before) {
		t.Errorf("acquired at %s (%v), want now", h.rec.AcquiredAt, err)
	}
	_, err = Acquire(canceled(), path, Options{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
