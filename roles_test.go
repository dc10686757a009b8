package heirlock_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/heirlock/heirlock"
)

func init() {
	roles["hold"] = hold
}

// hold takes the lock at args[0] under the policy args[1] and keeps it until its input ends or says "release". It
// prints "held <acquisition> <identity it inherited from, or ->", or "refused <diagnosis as JSON>", or "error …".
func hold(args []string) int {
	l, err := heirlock.TryAcquire(args[0], heirlock.Options{Policy: heirlock.Policy(args[1])})
	var refused *heirlock.HeldError
	switch {
	case errors.As(err, &refused):
		text, _ := json.Marshal(refused.Diagnosis)
		fmt.Printf("refused %s\n", text)
		return 75
	case err != nil:
		fmt.Printf("error %v\n", err)
		return 1
	}
	from := "-"
	if l.Reclaimed != nil {
		from = string(l.Reclaimed.Identity)
	}
	fmt.Printf("held %s %s\n", l.Owner.Evidence.Acquisition, from)
	readLines(func(line string) bool { return line != "release" })
	if err := l.Release(); err != nil {
		fmt.Printf("error %v\n", err)
		return 1
	}
	fmt.Println("released")
	return 0
}

// The owner is killed; the lock stays, says stale, and the next taker inherits it on the evidence that the number is
// free. Refuse leaves it alone.
func TestOwnerKilledIsInherited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	owner := play(t, nil, "hold", path, "refuse")
	owner.expect("held")
	owner.kill()
	d, err := heirlock.Inspect(path, heirlock.Options{})
	if err != nil || d.State != "stale" || d.Identity != "pid-gone" || d.Witness != "released" {
		t.Fatalf("inspect: %+v, %v; want stale, pid-gone, released", d, err)
	}
	if _, err := heirlock.TryAcquire(path, heirlock.Options{}); !errors.Is(err, heirlock.ErrHeld) {
		t.Fatalf("policy refuse: %v, want ErrHeld", err)
	}
	l, err := heirlock.TryAcquire(path, heirlock.Options{Policy: heirlock.ReclaimStale})
	if err != nil {
		t.Fatal(err)
	}
	if l.Reclaimed == nil || l.Reclaimed.Identity != "pid-gone" {
		t.Errorf("reclaimed on %+v, want pid-gone", l.Reclaimed)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}
