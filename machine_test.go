package heirlock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/heirlock/heirlock"
)

// world is one lock path, and the model of who may hold it.
type world struct {
	t     *testing.T
	path  string
	owner string // of the file: "" (none), "us", "child", "dead"
	ours  *heirlock.Lock
	child *actor
	lost  []*heirlock.Lock // ours, whose file was taken away by hand
}

// got checks the answer of an attempt against the model: it succeeds exactly if the file is free, or its owner dead and
// the policy lets us inherit.
func (w *world) got(t *rapid.T, l *heirlock.Lock, err error, policy heirlock.Policy) {
	may := w.owner == "" || w.owner == "dead" && policy == heirlock.ReclaimStale
	if may != (err == nil) || err != nil && !errors.Is(err, heirlock.ErrHeld) {
		t.Fatalf("policy %s while the owner is %q: %v", policy, w.owner, err)
	}
	if err == nil {
		if (l.Reclaimed != nil) != (w.owner == "dead") {
			t.Fatalf("inherited from %+v while the owner is %q", l.Reclaimed, w.owner)
		}
		w.ours, w.owner = l, "us"
	}
}

func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"try": func(t *rapid.T) {
			policy := rapid.SampledFrom([]heirlock.Policy{heirlock.Refuse, heirlock.ReclaimStale}).Draw(t, "policy")
			l, err := heirlock.TryAcquire(w.path, heirlock.Options{Policy: policy})
			w.got(t, l, err, policy)
		},
		"wait and be cancelled": func(t *rapid.T) {
			reason := errors.New("enough")
			ctx, cancel := context.WithTimeoutCause(context.Background(), 3*time.Millisecond, reason)
			defer cancel()
			l, err := heirlock.Acquire(ctx, w.path, heirlock.Options{})
			if err != nil && !errors.Is(err, reason) {
				t.Fatalf("%v, want its cause", err)
			}
			if errors.Is(err, reason) && !errors.Is(err, heirlock.ErrHeld) {
				t.Skip("the context had ended before the first attempt")
			}
			w.got(t, l, err, heirlock.ReclaimStale)
		},
		"release": func(t *rapid.T) {
			if w.owner != "us" {
				t.Skip()
			}
			if err := w.ours.Release(); err != nil {
				t.Fatal(err)
			}
			w.ours, w.owner = nil, ""
		},
		"release what was lost": func(t *rapid.T) {
			if len(w.lost) == 0 {
				t.Skip()
			}
			if err := w.lost[0].Release(); !errors.Is(err, heirlock.ErrLost) {
				t.Fatalf("%v, want ErrLost", err)
			}
			w.lost = w.lost[1:]
		},
		"child takes": func(t *rapid.T) {
			if w.owner != "" || w.child != nil {
				t.Skip()
			}
			w.child = play(w.t, nil, "hold", w.path, "refuse")
			w.child.expect("held")
			w.owner = "child"
		},
		"child is killed": func(t *rapid.T) {
			if w.child == nil {
				t.Skip()
			}
			w.child.kill()
			w.child = nil
			if w.owner == "child" {
				w.owner = "dead"
			}
		},
		"rm by hand": func(t *rapid.T) {
			if w.owner == "" {
				t.Skip()
			}
			if err := os.Remove(w.path); err != nil {
				t.Fatal(err)
			}
			if w.owner == "us" {
				w.lost, w.ours = append(w.lost, w.ours), nil
			}
			w.owner = ""
		},
		"reclaim": func(t *rapid.T) {
			d, err := heirlock.Reclaim(w.path, "", heirlock.Options{})
			switch w.owner {
			case "us", "child":
				if !errors.Is(err, heirlock.ErrHeld) || d.State != "held" {
					t.Fatalf("owner %q: %+v, %v", w.owner, d, err)
				}
			default:
				want := map[string]string{"": "free", "dead": "stale"}[w.owner]
				if err != nil || d.State != want {
					t.Fatalf("owner %q: %+v, %v; want %s", w.owner, d, err, want)
				}
				w.owner = ""
			}
		},
		"": func(t *rapid.T) { // after each step
			d, err := heirlock.Inspect(w.path, heirlock.Options{})
			want := map[string]string{"": "free", "us": "held", "child": "held", "dead": "stale"}[w.owner]
			if err != nil || d.State != want || d.Guard != nil {
				t.Fatalf("owner %q: %+v, %v; want %s", w.owner, d, err, want)
			}
		},
	}
}

// Whatever is done in whatever order, the library and the model agree on who holds the lock.
func TestMachineOfOneLock(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("nobody is proven dead here")
	}
	dir := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		at, err := os.MkdirTemp(dir, "")
		if err != nil {
			r.Fatal(err)
		}
		w := &world{t: t, path: filepath.Join(at, "x.lock")}
		r.Repeat(w.actions())
		if w.child != nil {
			w.child.kill()
		}
		for _, l := range w.lost {
			_ = l.Release()
		}
		if w.ours != nil && w.ours.Release() != nil {
			r.Fatal("the last release failed")
		}
		if w.owner == "dead" || w.owner == "child" {
			if _, err := heirlock.Reclaim(w.path, "", heirlock.Options{}); err != nil {
				r.Fatal(err)
			}
		}
		if names, err := os.ReadDir(at); err != nil || len(names) > 0 {
			r.Fatalf("left %v, %v", names, err)
		}
	})
}
