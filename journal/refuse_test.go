package journal_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/heirlock/heirlock"
	"github.com/heirlock/heirlock/journal"
)

type panicking struct{}

func (panicking) MarshalJSON() ([]byte, error) { panic("in MarshalJSON") }

type twoValues struct{}

func (twoValues) MarshalJSONTo(enc *jsontext.Encoder) error {
	return errors.Join(enc.WriteToken(jsontext.Int(1)), enc.WriteToken(jsontext.Int(2)))
}

type raw string

func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

type cycle struct{ Next *cycle }

// Everything that JSON cannot say is refused as invalid and leaves no trace; what it can say is one line.
func TestInvalidEvents(t *testing.T) {
	endless := &cycle{}
	endless.Next = endless
	var itself any
	itself = &itself
	path := filepath.Join(t.TempDir(), "j")
	opts := journal.Options[any]{MaxEventBytes: 1000, MaxPendingItems: 100, MaxPendingBytes: 1 << 16, MaxFileBytes: 1 << 16, MaxFiles: 1}
	opts.Validate = func(e any) error {
		switch e {
		case "panic":
			panic("in Validate")
		case "no":
			return errors.New("said no")
		}
		return nil
	}
	j, err := journal.Open(path, opts)
	must(t, err)
	defer j.Close(background)
	refused := uint64(0)
	for _, c := range []struct {
		event any
		why   string
	}{
		{math.NaN(), "NaN"},
		{math.Inf(1), "Inf"},
		{make(chan int), "chan"},
		{func() {}, "func"},
		{endless, "cycle"},
		{itself, "cycle"},
		{"\xff", "UTF-8"},
		{map[string]int{"\xff": 1}, "UTF-8"},
		{panicking{}, "panic: in MarshalJSON"},
		{twoValues{}, "exactly one value"},
		{raw(`{"a":1,"a":2}`), "duplicate"},
		{raw("\"\xff\""), "UTF-8"},
		{raw(`"a" "b"`), "after top-level value"},
		{raw(``), ""},
		{jsontext.Value(`{"a":1,"a":2}`), "duplicate"},
		{jsontext.Value(`{"a":`), "unexpected"},
		{"panic", "panic: in Validate"},
		{"no", "said no"},
	} {
		for name, submit := range map[string]func(any) (journal.Receipt, error){
			"Submit":     j.Submit,
			"SubmitWait": func(e any) (journal.Receipt, error) { return j.SubmitWait(background, e) },
		} {
			r, err := submit(c.event)
			var refusal *journal.RefusedError
			if !errors.As(err, &refusal) || refusal.Reason != journal.ErrInvalid || r != (journal.Receipt{}) ||
				!strings.Contains(fmt.Sprint(refusal.Cause), c.why) {
				t.Errorf("%s(%T): %+v, %v; want it invalid: %s", name, c.event, r, err, c.why)
			}
			refused++
		}
	}
	var want strings.Builder
	for i, c := range []struct {
		event any
		text  string
	}{
		{"a\nb\x00<&>\u2028", `"a\nb\u0000<&>` + "\u2028" + `"`},
		{raw("{\"a\" :\r\n [1 , 2.50] }"), `{"a":[1,2.50]}`},
		{jsontext.Value("  1e999 "), `1e999`},
		{map[string]int{"b": 2, "a": 1, "c": 3}, `{"a":1,"b":2,"c":3}`},
		{(*cycle)(nil), `null`},
		{nil, `null`},
	} {
		_, err := j.Submit(c.event)
		must(t, err)
		fmt.Fprintf(&want, `{"schemaVersion":1,"epoch":"%s","sequence":%d,"event":%s}`+"\n", j.Status().Epoch, i+1, c.text)
	}
	must(t, j.Flush(background))
	if got := content(t, path); got != want.String() {
		t.Errorf("the file holds\n%swant\n%s", got, &want)
	}
	if s := j.Status(); s.RefusalsByReason.Invalid != refused || s.Refused != refused || s.LastAccepted != 6 {
		t.Errorf("status %v", j)
	}
}

// An event of exactly the bound is accepted, one byte more is not; and one that has no end does not take the memory that
// it would need.
func TestOversizedEvents(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j, err := journal.Open(path, journal.Options[any]{
		MaxEventBytes: 10_000, MaxPendingItems: 10, MaxPendingBytes: 1 << 20, MaxFileBytes: 1 << 20, MaxFiles: 1,
	})
	must(t, err)
	defer j.Close(background)
	for _, quoted := range []any{strings.Repeat("x", 9_998), []string{strings.Repeat("x", 4_000), strings.Repeat("y", 5_993)}} {
		_, err := j.Submit(quoted)
		must(t, err)
	}
	for _, over := range []any{strings.Repeat("x", 9_999), []string{strings.Repeat("x", 4_000), strings.Repeat("y", 5_994)}} {
		if _, err := j.Submit(over); !errors.Is(err, journal.ErrOversized) {
			t.Errorf("%v, want %v", err, journal.ErrOversized)
		}
	}
	long := &counted{}
	if _, err := j.Submit(long); !errors.Is(err, journal.ErrOversized) || long.n > 10_000 {
		t.Errorf("%v after %d values, want %v", err, long.n, journal.ErrOversized)
	}
	must(t, j.Flush(background))
	if s := j.Status(); s.Written != 2 || s.RefusalsByReason.Oversized != 3 {
		t.Errorf("status %v", j)
	}
}

// counted is an array of a million numbers.
type counted struct{ n int }

func (c *counted) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}
	for c.n = 0; c.n < 1e6; c.n++ {
		if err := enc.WriteToken(jsontext.Int(1)); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndArray)
}

// What cannot be a journal is an error that says so, and nothing is touched.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.Mkdir(at("dir"), 0o700))
	must(t, os.WriteFile(at("victim"), []byte("not ours\n"), 0o600))
	must(t, os.Symlink("victim", at("link")))
	must(t, os.Symlink("nothing", at("dangling")))
	must(t, os.WriteFile(at("good"), []byte("{}\n"), 0o600))
	must(t, os.Mkdir(at("good.2"), 0o700))
	must(t, os.WriteFile(at("beyond"), []byte("{}\n"), 0o600))
	must(t, os.Symlink("victim", at("beyond.7")))
	before := names(t, at("x"))
	frame := len(`{"schemaVersion":1,"epoch":"0198f2c4-7b1a-4c3e-9a55-3f1d2b6c8e90","sequence":9007199254740991,"event":}`) + 1
	bounds := func(change func(o *journal.Options[event])) journal.Options[event] {
		o := small()
		change(&o)
		return o
	}
	for _, c := range []struct {
		path string
		opts journal.Options[event]
		want error
		says string
	}{
		{"j", small(), syscall.EINVAL, "absolute"},
		{"", small(), syscall.EINVAL, "absolute"},
		{dir + "/a/../j", small(), syscall.EINVAL, "normal"},
		{dir + "//j", small(), syscall.EINVAL, "normal"},
		{dir + "/j/", small(), syscall.EINVAL, "normal"},
		{"/", small(), syscall.EINVAL, "no file"},
		{at("j\x00"), small(), syscall.EINVAL, "no file"},
		{at("missing/j"), small(), fs.ErrNotExist, "missing"},
		{at("victim/j"), small(), nil, "not a directory"},
		{at("dir"), small(), nil, "directory"},
		{at("link"), small(), nil, "symlink"},
		{at("dangling"), small(), nil, "symlink"},
		{at("good"), small(), nil, "good.2: not a regular file but a directory"},
		{at("beyond"), small(), nil, "beyond.7: not a regular file but a symlink"},
		{at("j"), journal.Options[event]{}, syscall.EINVAL, "positive"},
		{at("j"), bounds(func(o *journal.Options[event]) { o.MaxEventBytes = 0 }), syscall.EINVAL, "positive"},
		{at("j"), bounds(func(o *journal.Options[event]) { o.MaxPendingItems = -1 }), syscall.EINVAL, "positive"},
		{at("j"), bounds(func(o *journal.Options[event]) { o.MaxPendingBytes = 0 }), syscall.EINVAL, "positive"},
		{at("j"), bounds(func(o *journal.Options[event]) { o.MaxFileBytes = 0 }), syscall.EINVAL, "positive"},
		{at("j"), bounds(func(o *journal.Options[event]) { o.MaxFiles = 0 }), syscall.EINVAL, "positive"},
		{at("j"), bounds(func(o *journal.Options[event]) { o.MaxFiles = 1_000_001 }), syscall.EINVAL, "MaxFiles"},
		{at("j"), bounds(func(o *journal.Options[event]) { o.MaxEventBytes = 4096 - frame + 1 }), syscall.EINVAL, "MaxFileBytes"},
		{at("j"), bounds(func(o *journal.Options[event]) { o.MaxPendingBytes = int64(256 + frame - 1) }), syscall.EINVAL, "MaxPendingBytes"},
		{at("j"), bounds(func(o *journal.Options[event]) { o.Mode = 0o400 }), syscall.EINVAL, "mode"},
		{at("j"), bounds(func(o *journal.Options[event]) { o.Mode = fs.ModeSetuid | 0o600 }), syscall.EINVAL, "mode"},
		{at("j"), bounds(func(o *journal.Options[event]) { o.Lock.Policy = "sometimes" }), syscall.EINVAL, "policy"},
	} {
		j, err := journal.Open(c.path, c.opts)
		if err == nil {
			t.Errorf("%q opened", c.path)
			must(t, j.Close(background))
			continue
		}
		if c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v; want %v, %s", c.path, err, c.want, c.says)
		}
	}
	if got := names(t, at("x")); strings.Join(got, " ") != strings.Join(before, " ") {
		t.Errorf("the directory holds %q, want %q", got, before)
	}
	if content(t, at("victim")) != "not ours\n" || content(t, at("good")) != "{}\n" {
		t.Error("a file was touched")
	}
	o := bounds(func(o *journal.Options[event]) { o.MaxEventBytes, o.MaxPendingBytes = 4096-frame, 4096 })
	must(t, open(t, at("j"), o).Close(background)) // just so
}

// A lock that is held is an error with the evidence. The file is not touched, not even a torn one.
func TestOpenWhileHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	must(t, os.WriteFile(path, []byte("torn"), 0o600))
	before, err := os.Stat(path)
	must(t, err)
	l, err := heirlock.TryAcquire(path+".lock", heirlock.Options{Label: "the other"})
	must(t, err)
	opts := small()
	opts.Lock.Policy = heirlock.ReclaimStale
	_, err = journal.Open(path, opts)
	var held *heirlock.HeldError
	if !errors.As(err, &held) || held.Diagnosis.State != "held" || held.Diagnosis.Owner == nil || held.Diagnosis.Owner.PID != int64(os.Getpid()) {
		t.Errorf("%v, want it held by this process", err)
	}
	after, err := os.Stat(path)
	must(t, err)
	if content(t, path) != "torn" || !after.ModTime().Equal(before.ModTime()) || len(names(t, path)) != 1 {
		t.Errorf("the files were touched: %q", names(t, path))
	}
	must(t, l.Release())
	must(t, open(t, path, opts).Close(background))
}

// A context that has ended lets nothing in.
func TestSubmitWaitWithoutTime(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "j"), small())
	why := errors.New("no time")
	ctx, cancel := context.WithCancelCause(background)
	cancel(why)
	if _, err := j.SubmitWait(ctx, event{}); err != why || j.Status().Received != 0 {
		t.Errorf("%v, %v", err, j)
	}
}

// A journal at the name of another one's lock, or of its guard, would leave a file that keeps that one closed for ever.
func TestLockNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"j.lock", "j.lock.reclaim", "j.lock.lock", ".lock"} {
		path := filepath.Join(dir, name)
		_, err := journal.Open(path, small())
		var named *fs.PathError
		if !isAll(err, syscall.EINVAL) || !errors.As(err, &named) || named.Path != path || !strings.Contains(err.Error(), "lock") {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Fatalf("%s: left behind: %v, %v", name, left, err)
		}
	}
	for _, name := range []string{"j.locks", "lock", "j.reclaim", "j.lock.1"} {
		must(t, open(t, filepath.Join(dir, name), small()).Close(background))
	}
}
