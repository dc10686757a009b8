package heirlock_test

import (
	"slices"
	"strings"
	"testing"
)

// An owner is stopped after each call of its acquire and release, while a taker and a newcomer come by.
//
//	owner:     fstatat (compare) · unlinkat · close · close
//	                ▲ stopped             ▲ stopped      goes on ─▶ Release says nil
//	taker:     refused: matched, alive    takes the free name, releases
//	newcomer:                                       takes it ────▶ still has it
func TestRaceOwnerStoppedBetweenTheStepsOfItsRelease(t *testing.T) {
	sweeping(t)
	t.Parallel()
	at := journalled(t)
	passages := planTake.halfway(t, at, "acquire release", takerAndNewcomer, ownerAndNewcomer)
	interleaved(t, passages, "unlinkat x.lock", "close", "newfstatat x.lock", "pwrite64")
	betweenCompareAndUnlink(t, passages)
}

// The same with others who live in another PID namespace and take what the kernel says is released: they take the lock
// as soon as its flock is free. A release that closed first would let them in between, and then, by the inode number
// that ext4 hands out again, take the newcomer's lock for its own and remove it.
//
//	owner:     fstatat (compare) · unlinkat · close
//	                ▲ stopped             ▲ stopped     goes on ─▶ Release says nil
//	taker:     refused: witness held      takes the free name, releases
//	newcomer:                                       takes it ────▶ still has it
func TestRaceOwnerStoppedWhileAnotherNamespaceComesBy(t *testing.T) {
	sweeping(t, "unshare")
	t.Parallel()
	at := journalled(t)
	elsewhere := func(s *scene) *guest {
		var last *guest
		for range 2 {
			if last != nil && last.release() != nil {
				t.Error("the taker could not release")
			}
			a := play(t, []string{"unshare", "--pid", "--fork", "--mount-proc", "--kill-child"}, "hold", s.path, "reclaim-released")
			line := <-a.lines
			words := strings.Fields(line)
			switch {
			case words[0] == "held":
				last = &guest{words[1], func() error { a.say("release"); a.expect("released"); a.wait(); return nil }}
			case words[0] == "refused" && last == nil && strings.Contains(line, `"witness":"held"`):
				return nil
			default:
				t.Fatalf("the other namespace said %q", line)
			}
		}
		return last
	}
	passages := planTake.halfway(t, at, "release", elsewhere, ownerAndNewcomer)
	interleaved(t, passages, "unlinkat x.lock", "close")
	betweenCompareAndUnlink(t, passages)
}

// ownerAndNewcomer lets the owner end, who either had released before the newcomer came, or never had the lock.
func ownerAndNewcomer(s *scene, tr *traced, newcomer *guest) {
	s.t.Helper()
	line := <-tr.lines
	if strings.HasPrefix(line, "held ") {
		tr.expect("released")
	} else if newcomer == nil || !strings.Contains(line, newcomer.acquisition) {
		s.t.Errorf("the owner said %q; newcomer: %+v", line, newcomer)
	}
	tr.wait()
	if newcomer == nil {
		s.only()
	} else {
		s.keeps(newcomer)
	}
}

func betweenCompareAndUnlink(t *testing.T, passages []passage) {
	t.Helper()
	i := slices.IndexFunc(passages, func(p passage) bool { return p.after == "unlinkat x.lock" })
	if i < 1 || passages[i-1].after != "newfstatat x.lock" || passages[i-1].taken || passages[i].reused {
		t.Errorf("between compare and unlink: want a refused taker, and after it another inode number: %+v", passages)
	}
}
