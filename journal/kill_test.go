package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/heirlock/heirlock"
)

func init() { roles["write"] = writeRole }

// stormOptions are bounds with which a rotation comes every dozen of frames.
func stormOptions(policy heirlock.Policy) Options[item] {
	return Options[item]{
		MaxEventBytes: 300, MaxPendingItems: 1000, MaxPendingBytes: 1 << 20, MaxFileBytes: 2000, MaxFiles: 4,
		Lock: heirlock.Options{Policy: policy},
	}
}

// writeRole opens the journal args[0] under the policy args[1], prints "open <status>", or "refused <diagnosis>", or
// "error …"; then it writes until its input ends, or says "close", and prints "flushed <sequence>" behind each Flush.
func writeRole(args []string) int {
	fmt.Println("begin")
	j, err := Open(args[0], stormOptions(heirlock.Policy(args[1])))
	var held *heirlock.HeldError
	if errors.As(err, &held) {
		text, _ := json.Marshal(held.Diagnosis)
		fmt.Printf("refused %s\n", text)
		return 75
	}
	if err != nil {
		fmt.Printf("error %v\n", err)
		return 71
	}
	fmt.Printf("open %v\n", j)
	stop := make(chan struct{})
	go func() {
		bufio.NewReader(os.Stdin).ReadString('\n')
		close(stop)
	}()
	for n := 0; ; n++ {
		select {
		case <-stop:
			if err := j.Close(context.Background()); err != nil {
				fmt.Printf("error %v\n", err)
				return 71
			}
			fmt.Println("closed")
			return 0
		default:
		}
		var last Receipt
		for range 1 + n%7 {
			if last, err = j.SubmitWait(context.Background(), item{Text: strings.Repeat("x", n%150)}); err != nil {
				fmt.Printf("error %v\n", err)
				return 71
			}
		}
		if err := j.Flush(context.Background()); err != nil {
			fmt.Printf("error %v\n", err)
			return 71
		}
		fmt.Printf("flushed %d\n", last.Sequence)
	}
}

// stored is one frame as it is found again.
type stored struct {
	epoch    string
	sequence uint64
}

// shelfState is what the directory of a journal holds.
type shelfState struct {
	frames []stored
	files  int
	torn   int // lines that are no frames; each is the last of its file
}

// look reads everything that is retained, and requires the bounds and that only the ends of files are torn.
func look(t testing.TB, path string, opts Options[item]) (s shelfState) {
	t.Helper()
	files, err := Files(path) // the newest may be missing
	if errors.Is(err, os.ErrNotExist) {
		return s
	}
	if err != nil {
		t.Fatal(err)
	}
	if s.files = len(files); s.files > opts.MaxFiles {
		t.Errorf("%d files, at most %d", s.files, opts.MaxFiles)
	}
	for _, file := range files {
		st, err := os.Lstat(file)
		if err != nil {
			t.Fatal(err)
		}
		if st.Size() > opts.MaxFileBytes {
			t.Errorf("%s has %d bytes, at most %d", file, st.Size(), opts.MaxFileBytes)
		}
	}
	for rec, err := range Read(context.Background(), []string{path}, ReadOptions[jsontext.Value]{Generations: true}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case rec.Anomaly != nil:
			s.torn++
			if rec.Anomaly.Position != "tail" || rec.Anomaly.Reason != "unterminated-line" {
				t.Errorf("damage that no kill can do: %+v", rec.Anomaly)
			}
		case rec.Gap != nil:
			t.Errorf("a gap: %+v", rec.Gap)
		default:
			s.frames = append(s.frames, stored{rec.Epoch, rec.Sequence})
		}
	}
	return s
}

// follows requires that the files hold what they held before and then the frames of one more epoch, in order, each once, at
// least the confirmed ones; of the oldest, whole files may be missing, but only where no number was free.
func (s shelfState) follows(t testing.TB, before shelfState, confirmed uint64, most int) {
	t.Helper()
	rest := s.frames
	for len(rest) > 0 && slices.Contains(before.frames, rest[0]) {
		rest = rest[1:]
	}
	old := s.frames[:len(s.frames)-len(rest)]
	if len(old) > len(before.frames) || !slices.Equal(old, before.frames[len(before.frames)-len(old):]) {
		t.Errorf("the old frames %v are not the last of %v", old, before.frames)
	}
	dropped := len(old) < len(before.frames)
	for i, f := range rest {
		if f.epoch != rest[0].epoch || f.sequence != rest[0].sequence+uint64(i) {
			t.Errorf("frame %d of the epoch is %v, and the first %v", i, f, rest[0])
		}
	}
	last := uint64(0)
	if len(rest) > 0 {
		last = rest[len(rest)-1].sequence
		if rest[0].sequence != 1 {
			dropped = true
			if len(old) > 0 {
				t.Errorf("the epoch begins with %d behind older frames", rest[0].sequence)
			}
		}
	}
	if last < confirmed && most > 1 { // with one file, a rotation begins with its removal
		t.Errorf("frames up to %d were confirmed, only %d are there", confirmed, last)
	}
	// The oldest file goes before the names move up: for a moment one less is there.
	if dropped && s.files < most-1 {
		t.Errorf("frames are missing, with %d files of %d", s.files, most)
	}
}

// lastFlushed reads the lines that are left, and returns the last sequence that was confirmed.
func (a *actor) lastFlushed(t testing.TB) (last uint64) {
	t.Helper()
	for line := range a.lines {
		if strings.HasPrefix(line, "error") {
			t.Error(line)
		}
		if n, ok := strings.CutPrefix(line, "flushed "); ok {
			last, _ = strconv.ParseUint(n, 10, 64)
		}
	}
	return last
}

// A writer is killed at random moments, again and again on one path, and each next one inherits the lock and the files.
//
//	writer k:  open · frames, flush, rotations … ✗
//	then:      every confirmed frame is there, in order, once; at most the tails are torn; the bounds hold
func TestKillStorm(t *testing.T) {
	rounds := 60
	if n, err := strconv.Atoi(os.Getenv("HEIRLOCK_KILL_ROUNDS")); err == nil {
		rounds = n
	}
	if testing.Short() {
		rounds = 10
	}
	path := filepath.Join(t.TempDir(), "j")
	opts := stormOptions(heirlock.ReclaimStale)
	var before shelfState
	rotations, torn := 0, 0
	for round := range rounds {
		a := play(t, "write", path, "reclaim-stale")
		a.expect("begin")
		flushes := 0
		if rand.IntN(3) > 0 {
			a.expect("open")
			flushes = rand.IntN(40)
		}
		for range flushes {
			a.expect("flushed")
		}
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond) // the moment is the point
		a.kill()
		confirmed := a.lastFlushed(t)
		now := look(t, path, opts)
		now.follows(t, before, confirmed, opts.MaxFiles)
		if t.Failed() {
			t.Fatalf("round %d of %d", round, rounds)
		}
		if now.files == opts.MaxFiles {
			rotations++
		}
		torn += max(0, now.torn-before.torn)
		before = now
	}
	if rotations < rounds/4 {
		t.Errorf("all files were there after %d of %d rounds only: no rotation was hit", rotations, rounds)
	}
	t.Logf("%d rounds, %d torn tails", rounds, torn)
	a := play(t, "write", path, "reclaim-stale")
	a.expect("begin")
	a.expect("open")
	a.in.Close()
	confirmed := a.lastFlushed(t)
	if code := a.wait(); code != 0 {
		t.Errorf("the last writer: exit status %d", code)
	}
	look(t, path, opts).follows(t, before, confirmed, opts.MaxFiles)
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".heirlock-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// Two processes, one journal.
//
//	first:   open ··································· ✗
//	second:         refused, with its identity          refuse: still refused · reclaim-stale: opens, and says on what
func TestTwoProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	first := play(t, "write", path, "refuse")
	first.expect("begin")
	first.expect("open")
	refused := func(policy, state string) {
		t.Helper()
		second := play(t, "write", path, policy)
		second.expect("begin")
		diagnosis := second.expect("refused")
		for _, want := range []string{fmt.Sprintf(`"pid":%d`, first.cmd.Process.Pid), `"state":"` + state + `"`} {
			if !strings.Contains(diagnosis, want) {
				t.Errorf("policy %s: %s, want %s", policy, diagnosis, want)
			}
		}
		if code := second.wait(); code != 75 {
			t.Errorf("exit status %d", code)
		}
	}
	refused("refuse", "held")
	refused("reclaim-stale", "held")
	first.kill()
	confirmed := first.lastFlushed(t)
	refused("refuse", "stale")
	opts := stormOptions(heirlock.ReclaimStale)
	look(t, path, opts).follows(t, shelfState{}, confirmed, opts.MaxFiles)
	j, err := Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close(context.Background())
	lock := j.Status().Lock
	if lock.Policy != heirlock.ReclaimStale || !lock.ReclaimedStale || lock.Evidence == nil || lock.Evidence.Identity != "pid-gone" ||
		lock.Evidence.Owner == nil || lock.Evidence.Owner.PID != int64(first.cmd.Process.Pid) {
		t.Errorf("the lock was taken on %+v, want the evidence that %d is gone", lock, first.cmd.Process.Pid)
	}
	if text := j.String(); !strings.Contains(text, `"reclaimedStale":true,"evidence":{"path":`) || !jsontext.Value(text).IsValid() {
		t.Errorf("the status says %s", text)
	}
}
