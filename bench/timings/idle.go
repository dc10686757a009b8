package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/heirlock/heirlock"
)

const (
	idleFor        = 10 * time.Second
	idleProcesses  = 100
	idleGoroutines = 1000
)

// idle measures what waiting costs: 100 processes, then 1,000 goroutines of one process, for 10 s behind one owner.
func idle(int) error {
	dir, err := os.MkdirTemp("", "timings-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"flock", "heirlock"} {
		path := filepath.Join(dir, name+".lock")
		owner := start("hold", name, path)
		owner.say("take")
		owner.expect("waiting")
		owner.expect("held")
		var waiters []*actor
		for range idleProcesses {
			w := start("hold", name, path)
			w.say("take")
			w.expect("waiting")
			waiters = append(waiters, w)
		}
		time.Sleep(2 * time.Second) // they come to rest
		before := ticks(waiters)
		time.Sleep(idleFor)
		fmt.Printf("idle     %-10s %d processes waiting for %v: %d ms of processor time together\n", name, idleProcesses, idleFor, 10*(ticks(waiters)-before))
		for _, w := range waiters {
			w.stop()
		}
		owner.stop()
	}
	w := start("many", filepath.Join(dir, "many.lock"))
	line, err := w.out.ReadString('\n')
	fmt.Print(line)
	w.stop()
	return err
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

// many waits with a thousand goroutines behind a lock of its own.
func many(args []string) error {
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
	fmt.Printf("idle     %-10s %d goroutines waiting for %v: %d ms of processor time; each %d bytes of heap and %d of stack more than a goroutine that does nothing else\n",
		"heirlock", idleGoroutines, idleFor, 10*(ticksOf(os.Getpid())-cpu),
		each(before.HeapAlloc, parked.HeapAlloc, after.HeapAlloc), each(before.StackInuse, parked.StackInuse, after.StackInuse))
	bufio.NewScanner(os.Stdin).Scan()
	return l.Release()
}
