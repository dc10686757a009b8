package heirlock_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/heirlock/heirlock"
)

// plan is a program of steps and what lies in its directory when it begins.
type plan struct {
	options string
	steps   []string
	dead    bool // a dead process's lock, and a dead process's guard
}

func (p plan) String() string { return strings.Join(p.steps, "+") + " " + p.options }

var (
	planTake = plan{options: "refuse", steps: []string{"acquire", "release"}}
	// planMeasured leaves out of the looking what the process measures of itself, which is the same in every plan.
	planMeasured = plan{options: "refuse", steps: []string{"measure", "acquire", "release"}}
	planInherit  = plan{options: "reclaim-stale", steps: []string{"measure", "acquire", "release"}, dead: true}
	planReclaim  = plan{options: "reclaim-stale", steps: []string{"measure", "reclaim"}, dead: true}
)

func (p plan) with(option string) plan {
	p.options += "," + option
	return p
}

func (p plan) scene(t testing.TB, parent string) *scene {
	s := newScene(t, parent)
	if p.dead {
		leaveDead(t, s.path)
		leaveDead(t, s.guard())
	}
	return s
}

// first is the step where the looking begins: measuring oneself is left out where it is a step of its own.
func (p plan) first() string {
	if p.steps[0] == "measure" {
		return p.steps[1]
	}
	return p.steps[0]
}

// recorded runs the plan undisturbed and returns its calls.
func (p plan) recorded(t testing.TB, parent string) []call {
	t.Helper()
	s := p.scene(t, parent)
	tr := underStrace(t, "", s, p.options, p.steps...)
	if code := tr.wait(); code != 0 {
		t.Fatalf("undisturbed: exit status %d", code)
	}
	s.only()
	calls := tr.calls(p.first())
	if len(calls) < len(p.steps) {
		t.Fatalf("undisturbed: only the calls %v", calls)
	}
	return calls
}

// everywhere runs the plan again and again and kills it as it enters the first, second, … call of each kind that it was
// recorded to make, until it survives. It returns the points at which it was killed, "<call before> | <call>".
func (p plan) everywhere(t *testing.T, parent string) []string {
	t.Helper()
	var points []string
	for _, k := range kinds(p.recorded(t, parent)) {
		for n := k.nth; ; n++ {
			s := p.scene(t, parent)
			tr := underStrace(t, fmt.Sprintf("%s:signal=KILL:when=%d", k.name, n), s, p.options, p.steps...)
			code := tr.wait()
			if code == 0 {
				s.only()
				break
			}
			calls := tr.calls(p.first())
			if code != -1 || len(calls) == 0 || calls[len(calls)-1].name != k.name {
				t.Fatalf("%s %d: exit status %d at %v", k.name, n, code, calls)
			}
			point := "begin | " + calls[len(calls)-1].String()
			if len(calls) > 1 {
				point = calls[len(calls)-2].String() + " | " + calls[len(calls)-1].String()
			}
			points = append(points, point)
			s.recovers()
			if t.Failed() {
				t.Fatalf("after a kill at %s", point)
			}
		}
	}
	return points
}

// recovers requires that nothing ownerless was left, that the next taker gets the lock, and that after its release and
// one reclaim nothing is left; temporaries go with the next lock that is inherited.
func (s *scene) recovers() {
	s.t.Helper()
	d, err := heirlock.Inspect(s.path, heirlock.Options{})
	if err != nil || d.State != "free" && d.State != "stale" {
		s.t.Errorf("the lock is %+v, %v; want free or stale", d, err)
		return
	}
	if d.Guard != nil && d.Guard.Witness != "released" {
		s.t.Errorf("the guard is %+v, want one that is released", d.Guard)
	}
	if len(s.temporaries()) > 0 {
		s.takeAndRelease()
		leaveDead(s.t, s.path) // the next reclaim
	}
	s.tidy()
}

// Killed at every call of an acquire on a free name and of the release, of inheriting a dead lock beside a dead guard,
// and of a reclaim that takes nothing, for each way in which a file can be born.
//
//	plan:      call 1 · call 2 · … · call n
//	run k:     call 1 · … · call k-1 ✗          (SIGKILL as call k is entered; it is not made)
//	next:      inspect: free or stale, never ownerless · takes the lock · release · reclaim · empty directory
func TestRaceKilledAtEveryCall(t *testing.T) {
	sweeping(t)
	at := journalled(t)
	const publish, remove, give = "linkat x.lock | ", " | unlinkat x.lock", "unlinkat x.lock | close"
	const guard = "linkat x.lock.reclaim | "
	t.Run("plans", func(t *testing.T) {
		for _, c := range []struct {
			plan
			interesting []string
		}{
			{planTake, []string{publish, " | linkat x.lock", "newfstatat x.lock" + remove, give, "pwrite64 | "}},
			{planMeasured.with("durable"), []string{publish, "fdatasync | linkat x.lock", "unlinkat x.lock | openat ."}},
			{planMeasured.with("rename"), []string{"flock | pwrite64", "renameat2 .heirlock- x.lock | ", give}},
			{planMeasured.with("link"), []string{"linkat .heirlock- x.lock | ", " | unlinkat .heirlock-", give}},
			{planInherit, []string{publish, guard, give, "unlinkat x.lock | ", " | unlinkat x.lock.reclaim", "unlinkat x.lock.reclaim | "}},
			{planInherit.with("rename"), []string{"renameat2 .heirlock- x.lock | ", "renameat2 .heirlock- x.lock.reclaim | ", "openat .heirlock- | "}},
			{planInherit.with("link"), []string{"linkat .heirlock- x.lock | ", "linkat .heirlock- x.lock.reclaim | "}},
			{planReclaim, []string{guard, remove, "unlinkat x.lock | ", "unlinkat x.lock.reclaim | "}},
		} {
			t.Run(c.String(), func(t *testing.T) {
				if testing.Short() && c.String() != planTake.String() {
					t.Skip("hundreds of processes under strace")
				}
				t.Parallel()
				points := c.everywhere(t, at)
				require(t, points, c.interesting)
			})
		}
	})
}

// require wants each of the points among those at which the process was killed.
func require(t *testing.T, points, interesting []string) {
	t.Helper()
	t.Logf("killed at %d points", len(points))
	for _, want := range interesting {
		if !slices.ContainsFunc(points, func(p string) bool { return strings.Contains(shortened(p), want) }) {
			t.Errorf("no kill at %q, only at:\n%s", want, strings.Join(points, "\n"))
		}
	}
}

// shortened leaves the unique part of temporary names out.
func shortened(point string) string {
	const prefix, unique = ".heirlock-", 36
	head, tail, found := strings.Cut(point, prefix)
	if !found {
		return point
	}
	return head + prefix + shortened(tail[unique:])
}

// The same on a FUSE filesystem that really has no unnamed files.
func TestRaceKilledAtEveryCallOnBindfs(t *testing.T) {
	sweeping(t, "bindfs", "umount")
	source, at := t.TempDir(), t.TempDir()
	if out, err := exec.Command("bindfs", source, at).CombinedOutput(); err != nil {
		t.Skipf("bindfs: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	points := planMeasured.everywhere(t, at)
	require(t, points, []string{"openat .heirlock- | ", " | renameat2 .heirlock- x.lock", "unlinkat x.lock | close"})
}
