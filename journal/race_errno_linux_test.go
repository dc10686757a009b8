package journal

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// likely are errors beside EIO that a call is known for.
var likely = map[string][]string{
	"openat": {"EMFILE", "ENOSPC", "EACCES"}, "write": {"ENOSPC", "EDQUOT", "EINTR"}, "linkat": {"ENOSPC"}, "renameat2": {"ENOSPC", "EROFS"},
	"fdatasync": {"ENOSPC", "EDQUOT"}, "close": {"EDQUOT", "EINTR"}, "flock": {"ENOLCK", "EINTR"}, "ftruncate": {"EINTR"}, "unlinkat": {"EACCES"},
}

// Every call of open, append, rotation, sync and close is answered once with an error.
//
//	plan:   call 1 · call 2 · … · call n
//	run k:  call 1 · … · call k = EIO (ENOSPC, EDQUOT, …) · what it does about it
//	then:   it says the error or goes on; every confirmed frame is there, in order, once; only the oldest file may be
//	        gone; the counts add up; the lock is given back; the next writer opens
//
// EINTR is no error at all.
func TestEveryCallFailedOnce(t *testing.T) {
	sweeping(t)
	for _, c := range []struct {
		plan
		errnos []string
		more   bool
	}{
		{plan{3, "unnamed", false}, []string{"EIO"}, true},
		{plan{3, "rename", true}, []string{"EIO"}, false},
		{plan{2, "link", false}, []string{"EIO"}, false},
	} {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			at, runs, failed := inMemory(t), 0, map[string]int{}
			for _, call := range c.recorded(t, at) {
				errnos := c.errnos
				if c.more {
					errnos = append(errnos, likely[call.name]...)
				}
				for _, errno := range errnos {
					failed[c.failedAt(t, at, call, errno)]++
					runs++
				}
			}
			t.Logf("%d calls failed: %v", runs, failed)
			for _, phase := range []string{"error", "write", "rotation", "lock"} {
				if failed[phase] == 0 {
					t.Errorf("none of them ended in %s", phase)
				}
			}
		})
	}
}

// failedAt runs the plan once with one failed call, and returns how it ended: "error" of Open, a phase, or "fine".
func (p plan) failedAt(t *testing.T, at string, c call, errno string) (end string) {
	t.Helper()
	path, before := p.scene(t, at)
	tr := underStrace(t, fmt.Sprintf("%s:error=%s:when=%d", c.name, errno, c.nth), path, p)
	end = "fine"
	var confirmed, accepted, written, failed uint64
	var said []string
	var state string
	var retained int
	for line := range tr.lines {
		said = append(said, line)
		fmt.Sscanf(line, "flushed %d", &confirmed)
		if strings.HasPrefix(line, "error") {
			end = "error"
		}
		if strings.HasPrefix(line, "close") {
			for _, phase := range []string{phaseWrite, phaseRotation, phaseClose, phaseLock} {
				if strings.Contains(line, ErrFailed.Error()+": "+phase+": ") {
					end = phase
				}
			}
		}
		fmt.Sscanf(line, "end %s %d %d %d %d", &state, &accepted, &written, &failed, &retained)
	}
	code := tr.wait()
	ok := code == 1 && end == "error" || code == 0 && accepted == written+failed && written >= confirmed &&
		(state == stateClosed && end == "fine" && written == 12 || state == stateFailed && end != "fine")
	if !ok || errno == "EINTR" && end != "fine" {
		t.Errorf("it ended with %d, %s", code, end)
	}
	if files, err := Files(path); err != nil || end != "error" && len(files) != retained || slices.Contains(said, "uncounted rotation") {
		t.Errorf("%d files are counted, there are %d (%v), or a rotation was not counted", retained, len(files), err)
	}
	if _, err := os.Lstat(path); err != nil && (end == phaseRotation || end == "error") {
		t.Errorf("a rotation was not undone: %v", err)
	}
	if _, err := os.Lstat(path + ".lock"); err == nil && !c.unlocks() {
		t.Error("the lock was not given back")
	}
	p.recovers(t, path, before, max(confirmed, written))
	if t.Failed() {
		t.Fatalf("after %v (number %d) = %s it said\n%s", c, c.nth, errno, strings.Join(said, "\n"))
	}
	return end
}

// unlocks: the failed call was one of those that give the lock back.
func (c call) unlocks() bool {
	return (c.name == "unlinkat" || c.name == "newfstatat") && len(c.texts) > 0 && c.texts[0] == "j.lock"
}
