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

// many waits with a thousand goroutines behind a lock of its own.
func many(args []string) error {
	l, err := heirlock.TryAcquire(args[0], heirlock.Options{})
	if err != nil {
		return err
	}
	var before, parked, after runtime.MemStats
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	release := make(chan struct{})
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range idleGoroutines { // what a goroutine costs by itself
		go func() { <-release }()
	}
	time.Sleep(100 * time.Millisecond)
	runtime.GC()
	runtime.ReadMemStats(&parked)
	close(release)
	time.Sleep(100 * time.Millisecond)
	for range idleGoroutines {
		go func() { _, _ = heirlock.Acquire(ctx, args[0], heirlock.Options{}) }()
	}
	time.Sleep(2 * time.Second)
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := func(m *runtime.MemStats) int64 { return int64(m.HeapAlloc + m.StackInuse) }
	cpu := ticksOf(os.Getpid())
	time.Sleep(idleFor)
	fmt.Printf("idle     %-10s %d goroutines waiting for %v: %d ms of processor time, %d bytes each beyond the goroutine\n", "heirlock", idleGoroutines,
		idleFor, 10*(ticksOf(os.Getpid())-cpu), (used(&after)-used(&before)-(used(&parked)-used(&before)))/idleGoroutines)
	bufio.NewScanner(os.Stdin).Scan()
	return l.Release()
}
