package locks

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/heirlock/heirlock"
	"github.com/heirlock/heirlock/bench/timings/account"
	"github.com/heirlock/heirlock/bench/timings/role"
)

const (
	idleFor        = 10 * time.Second
	idleProcesses  = 100
	idleGoroutines = 1000
)

// Idle is what waiting costs: 100 processes, then 1,000 goroutines of one process, for 10 s behind one owner.
func Idle(dir string, _ int) error {
	s := account.Section{
		Title:   fmt.Sprintf("waiting for %.0f s: processor time, and memory", idleFor.Seconds()),
		Columns: []string{"", "together, ms of processor time", "each, bytes of heap", "each, bytes of stack"},
		Below: "Memory is what a goroutine has more than one that opened a file once and waits for nothing but a channel. Its stack is " +
			"4 KiB, as that of any goroutine that parks in a select beneath three calls, where that one has 2; the goal is about what is beyond the " +
			"goroutine and its stack. Processor time is counted in ticks of 10 ms.",
	}
	for _, name := range []string{"flock", "heirlock"} {
		ms, err := idleTogether(name, filepath.Join(dir, name+".lock"))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.Rows = append(s.Rows, []string{fmt.Sprintf("%s, %d processes", name, idleProcesses), strconv.Itoa(ms), "", ""})
		if name == "heirlock" {
			account.Goal("100 processes waiting for 10 s, ms of processor time", float64(ms), "<", 100)
		}
	}
	cmd, err := role.Command("many", []string{filepath.Join(dir, "many.lock")})
	if err != nil {
		return err
	}
	text, err := cmd.Output()
	if err != nil {
		return err
	}
	var cost goroutines
	if err := json.Unmarshal(text, &cost); err != nil {
		return err
	}
	s.Rows = append(s.Rows, []string{fmt.Sprintf("heirlock, %d goroutines", idleGoroutines),
		strconv.Itoa(cost.Ms), strconv.FormatInt(cost.Heap, 10), strconv.FormatInt(cost.Stack, 10)})
	account.Show(s)
	account.Goal("1,000 goroutines waiting for 10 s, ms of processor time", float64(cost.Ms), "<", 10)
	account.Goal("1,000 goroutines waiting, KiB beyond the goroutine and its stack, each", float64(cost.Heap)/1024, "<", 2)
	return nil
}

// idleTogether is the processor time of all waiting processes, in milliseconds.
func idleTogether(name, path string) (int, error) {
	owner, err := holder(name, path, true)
	if err != nil {
		return 0, err
	}
	defer owner.stop()
	var waiters []*actor
	defer func() {
		for _, w := range waiters {
			w.stop()
		}
	}()
	for range idleProcesses {
		w, err := holder(name, path, false)
		if err != nil {
			return 0, err
		}
		waiters = append(waiters, w)
	}
	time.Sleep(2 * time.Second) // they come to rest
	before := ticks(waiters)
	time.Sleep(idleFor)
	return 10 * (ticks(waiters) - before), nil
}

// ticks is the processor time of the processes, in clock ticks of 10 ms: fields 14 and 15 of /proc/<pid>/stat.
func ticks(of []*actor) (sum int) {
	for _, a := range of {
		sum += ticksOf(a.cmd.Process.Pid)
	}
	return sum
}

func ticksOf(pid int) (sum int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	for _, f := range fields[11:13] {
		n, _ := strconv.Atoi(f)
		sum += n
	}
	return sum
}

// settle lets the collector free what is dead and shrink the stacks, by half each time.
func settle() {
	for range 8 {
		runtime.GC()
	}
}

// goroutines is what the waiting goroutines cost: processor time together, memory each beyond a goroutine that does nothing.
type goroutines struct {
	Ms          int
	Heap, Stack int64
}

// Many is the role that waits with a thousand goroutines behind a lock of its own, and says what that cost.
func Many(args []string) error {
	l, err := heirlock.TryAcquire(args[0], heirlock.Options{})
	if err != nil {
		return err
	}
	var before, parked, after runtime.MemStats
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	release := make(chan struct{}) // never closed: whoever ended would leave a stack for the next to use
	settle()
	runtime.ReadMemStats(&before)
	for range idleGoroutines { // what a goroutine costs by itself that has opened a file and waits for one of two things
		go func() {
			if f, err := os.Open(filepath.Dir(args[0])); err == nil {
				f.Close()
			}
			select {
			case <-release:
			case <-ctx.Done():
			}
		}()
	}
	time.Sleep(time.Second)
	settle()
	runtime.ReadMemStats(&parked)
	for range idleGoroutines {
		go func() { _, _ = heirlock.Acquire(ctx, args[0], heirlock.Options{}) }()
	}
	time.Sleep(2 * time.Second)
	settle()
	runtime.ReadMemStats(&after)
	cpu := ticksOf(os.Getpid())
	time.Sleep(idleFor)
	each := func(before, parked, after uint64) int64 {
		return (int64(after-parked) - int64(parked-before)) / idleGoroutines
	}
	cost := goroutines{
		10 * (ticksOf(os.Getpid()) - cpu),
		each(before.HeapAlloc, parked.HeapAlloc, after.HeapAlloc), each(before.StackInuse, parked.StackInuse, after.StackInuse),
	}
	if err := json.NewEncoder(os.Stdout).Encode(cost); err != nil {
		return err
	}
	return l.Release()
}
