package heirlock_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// contents are the files of the directory.
func (s *scene) contents() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for _, name := range s.names() {
		text, err := os.ReadFile(filepath.Join(s.dir, name))
		if err != nil {
			s.t.Fatal(err)
		}
		out[name] = string(text)
	}
	return out
}

// Every call of acquire, reclaim and release is answered once with an error, for each way of birth.
//
//	plan:   call 1 · call 2 · … · call n
//	run k:  call 1 · … · call k = EIO (ENOSPC, EMFILE, EINTR) · what it does about it
//
// It succeeds or says the error; it leaves no file of its own behind, and of the dead ones only what is as it was; it does not
// panic. EINTR is no error at all. A release that failed can be tried again.
func TestRaceEveryCallFailedOnce(t *testing.T) {
	sweeping(t)
	if testing.Short() {
		t.Skip("hundreds of processes under strace")
	}
	for _, c := range []struct {
		plan
		errnos []string
	}{
		{planMeasured, []string{"EIO", "EINTR"}},
		{planMeasured.with("rename"), []string{"EIO", "EINTR"}},
		{planMeasured.with("link"), []string{"EIO", "EINTR"}},
		{planInherit, []string{"EIO", "EINTR"}},
		{planReclaim, []string{"EIO"}},
	} {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			at, runs := shm(t), 0
			for _, call := range c.recorded(t, at) {
				for _, errno := range append(c.errnos, likely[call.name]...) {
					c.failed(t, at, call, errno)
					runs++
				}
			}
			t.Logf("%d calls failed", runs)
		})
	}
}

// likely are errors beside EIO that a call is known for.
var likely = map[string][]string{
	"openat": {"EMFILE", "ENOSPC"}, "pwrite64": {"ENOSPC"}, "linkat": {"ENOSPC"}, "renameat2": {"ENOSPC"},
	"pidfd_open": {"EMFILE"}, "flock": {"ENOLCK"}, "fdatasync": {"ENOSPC"},
}

// failed runs the plan once with one failed call, and looks at what is left while the process still lives.
func (p plan) failed(t *testing.T, at string, c call, errno string) {
	t.Helper()
	s, failed := p.scene(t, at), t.Failed()
	before := s.contents()
	inject := fmt.Sprintf("%s:error=%s:when=%d", c.name, errno, c.nth)
	tr := underStrace(t, inject, s, p.options, append(slices.Clone(p.steps), "pause")...)
	var lines []string
	for line := range tr.lines {
		if line == "paused" {
			break
		}
		lines = append(lines, line)
	}
	said, after := strings.Join(lines, "\n"), s.contents()
	fault := fmt.Sprintf("%v (number %d) = %s: it said %s; the directory holds %q", c, c.nth, errno, said, s.names())
	if len(lines) == 0 {
		t.Errorf("a panic, or silence: %s", fault)
	}
	for _, bad := range []string{"error", "refused", "void"} {
		if errno == "EINTR" && strings.Contains(said, bad) {
			t.Errorf("EINTR surfaced: %s", fault)
		}
	}
	maps.DeleteFunc(after, func(name, text string) bool { return before[name] == text || c.removes(name) })
	if len(after) > 0 {
		t.Errorf("files left behind: %s", fault)
	}
	s.recovers()
	if code := tr.wait(); code > 1 {
		t.Errorf("exit status %d: %s", code, fault)
	}
	if t.Failed() && !failed {
		t.Logf("the first failure: %s", fault)
	}
}

// removes: the failed call was about removing a guard or a temporary, which then stays until the next reclaim tidies it.
func (c call) removes(name string) bool {
	if c.name != "newfstatat" && c.name != "unlinkat" || len(c.texts) == 0 {
		return false
	}
	last := c.texts[len(c.texts)-1]
	return last == name && name != "x.lock" || strings.HasPrefix(last, ".heirlock-") && strings.HasPrefix(name, ".heirlock-")
}
