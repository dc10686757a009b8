package heirlock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/heirlock/heirlock"
)

// Somebody removes the file under its holder: Lost closes at once, the next one takes the free name, and the release of
// the lost lock leaves the new owner's file alone and says so.
//
//	holder:    takes ──── Lost closes ──────────── Release: ErrLost
//	operator:        rm
//	newcomer:                          takes ───────────────────────▶ still his
func TestLostByRemoval(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	l, err := heirlock.TryAcquire(path, heirlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lost := l.Lost()
	if l.Lost() != lost {
		t.Error("a second channel")
	}
	select {
	case <-lost:
		t.Fatal("lost although nothing happened")
	default:
	}
	if err := os.Link(path, path+".backup"); err != nil { // raises the same event; the name is still ours
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	<-lost
	if took := time.Since(start); took > time.Second {
		t.Errorf("found lost after %v: by the look behind the event, not by the event", took)
	}
	newcomer, err := heirlock.TryAcquire(path, heirlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Release(); !errors.Is(err, heirlock.ErrLost) {
			t.Errorf("release: %v, want ErrLost", err)
		}
	}
	if d, err := heirlock.Inspect(path, heirlock.Options{}); err != nil || d.ID != newcomer.Owner.Evidence.Acquisition {
		t.Errorf("the newcomer's lock: %+v, %v", d, err)
	}
	if err := newcomer.Release(); err != nil {
		t.Error(err)
	}
}

// The channel of a lock that was released in order stays open, whether somebody asked before or only after.
func TestReleasedIsNotLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	for _, early := range []bool{true, false} {
		l, err := heirlock.TryAcquire(path, heirlock.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if early {
			l.Lost()
		}
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-l.Lost():
			t.Errorf("asked before: %v; lost", early)
		case <-time.After(30 * time.Millisecond):
		}
	}
}

// The context of Do is cancelled with a cause that is ErrLost and names the new owner.
func TestDoIsToldThatItLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	var other *heirlock.Lock
	err := heirlock.Do(t.Context(), path, heirlock.Options{}, func(ctx context.Context, l *heirlock.Lock) error {
		if err := os.Rename(path, path+".away"); err != nil {
			t.Error(err)
		}
		var err error
		if other, err = heirlock.TryAcquire(path, heirlock.Options{Label: "the next one"}); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if !errors.Is(err, heirlock.ErrLost) || !strings.Contains(err.Error(), "(the next one)") {
		t.Errorf("%v, want ErrLost that names the new owner", err)
	}
	if err := other.Release(); err != nil {
		t.Error(err)
	}
}

// Do releases on every way out, and its error is that of the function.
func TestDoReleasesOnEveryWayOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	free := func(way string) {
		t.Helper()
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after %s the lock is still there: %v", way, err)
		}
	}
	broken := errors.New("broken")
	held := func(fail error) func(context.Context, *heirlock.Lock) error {
		return func(ctx context.Context, l *heirlock.Lock) error {
			if d, err := heirlock.Inspect(path, heirlock.Options{}); err != nil || d.ID != l.Owner.Evidence.Acquisition || ctx.Err() != nil {
				t.Errorf("in the section: %+v, %v, %v", d, err, ctx.Err())
			}
			return fail
		}
	}
	if err := heirlock.Do(t.Context(), path, heirlock.Options{}, held(nil)); err != nil {
		t.Error(err)
	}
	free("success")
	if err := heirlock.Do(t.Context(), path, heirlock.Options{}, held(broken)); err != broken {
		t.Errorf("%v, want the function's own error", err)
	}
	free("failure")
	func() {
		defer func() {
			if r := recover(); r != "boom" {
				t.Errorf("recovered %v", r)
			}
		}()
		_ = heirlock.Do(t.Context(), path, heirlock.Options{}, func(context.Context, *heirlock.Lock) error { panic("boom") })
	}()
	free("panic")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = heirlock.Do(t.Context(), path, heirlock.Options{}, func(context.Context, *heirlock.Lock) error {
			runtime.Goexit()
			return nil
		})
	}()
	<-done
	free("Goexit")
}

// Bad calls are errors before any file is touched.
func TestBadCallsTouchNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.lock")
	gone, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("no time")
	cancel(reason)
	negative := -time.Second
	none := func(context.Context, *heirlock.Lock) error { t.Error("the function ran"); return nil }
	for name, err := range map[string]error{
		"nil function":   heirlock.Do(t.Context(), path, heirlock.Options{}, nil),
		"ended context":  heirlock.Do(gone, path, heirlock.Options{}, none),
		"empty path":     heirlock.Do(t.Context(), "", heirlock.Options{}, none),
		"negative grace": heirlock.Do(t.Context(), path, heirlock.Options{OwnerlessGrace: &negative}, none),
		"policy":         heirlock.Do(t.Context(), path, heirlock.Options{Policy: "age"}, none),
		"mode":           heirlock.Do(t.Context(), path, heirlock.Options{Mode: 0o200}, none),
	} {
		if err == nil || errors.Is(err, heirlock.ErrHeld) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "ended context" && err != reason {
			t.Errorf("%s: %v, want its cause", name, err)
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("left %v, %v", names, err)
	}
}
