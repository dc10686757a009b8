package heirlock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heirlock/heirlock"
)

func init() {
	roles["wait"] = waitRole
	roles["crowd"] = crowdRole
}

// waitRole waits for the lock at args[0], as the user args[1] if there is one, and says when it has it, what it cost, and
// whether it had to poll.
func waitRole(args []string) int {
	fmt.Println("waiting")
	if len(args) > 1 {
		uid, _ := strconv.Atoi(args[1])
		if err := syscall.Setuid(uid); err != nil {
			fmt.Println("error", err)
			return 1
		}
		ctx, stop := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer stop()
		if _, err := heirlock.Acquire(ctx, args[0], heirlock.Options{}); errors.Is(err, heirlock.ErrHeld) {
			fmt.Println("looks")
		}
	}
	l, err := heirlock.Acquire(context.Background(), args[0], heirlock.Options{})
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	var use unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &use)
	fmt.Println("held", (use.Utime.Nano()+use.Stime.Nano())/1e6, l.Polled)
	if err := l.Release(); err != nil {
		fmt.Println("error", err)
		return 1
	}
	return 0
}

// contends waits until a waiter watches: the owner comes last, by a pidfd.
func contends(t *testing.T, a *actor) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", a.cmd.Process.Pid)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if to, _ := os.Readlink(filepath.Join(dir, e.Name())); strings.Contains(to, "pidfd") {
				return
			}
		}
	}
	t.Fatal("it does not contend within a minute")
}

// A lock file that the waiter may not read cannot be watched: the waiter polls, says why, and gets the lock all the
// same. (So it goes, too, where the system is out of inotify instances or watches.)
//
//	owner:   ──── holds ──── releases
//	waiter:  opens nothing of it, looks ──── held
func TestWaitThatCannotWatch(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("another user's lock needs root")
	}
	dir, err := os.MkdirTemp("", "heirlock-open-") // one that every user reaches
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "x.lock")
	owner := play(t, nil, "hold", path, "refuse")
	owner.expect("held")
	waiter := play(t, nil, "wait", path, "65534")
	waiter.expect("waiting")
	waiter.expect("looks")             // it has been refused once,
	time.Sleep(500 * time.Millisecond) // and waits again by now: nothing that it opened would show
	owner.say("release")
	owner.expect("released")
	if said := waiter.expect("held"); !strings.Contains(said, "permission denied") {
		t.Errorf("it said %q, want why it polled", said)
	}
	if code := waiter.wait(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// The owner is dead and its witness held by a child: no event tells of the child's end. The waiter looks now and then,
// which costs nearly nothing, and takes the lock soon after it.
//
//	owner:   takes, hands on ── SIGKILL
//	child:                      ───────────────── ends
//	waiter:     waits ─────────────────────────────────── held
func TestWaitForAWitnessHeldByAChild(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	wrapper := agentIn(t)
	command := handOn(t, wrapper, path)
	waiter := play(t, nil, "wait", path)
	waiter.expect("waiting")
	contends(t, waiter)
	wrapper.die(t)
	time.Sleep(2 * time.Second)
	select {
	case line := <-waiter.lines:
		t.Fatalf("it said %q while the child lives", line)
	default:
	}
	command.end(t)
	said := strings.Fields(waiter.expect("held"))
	if cpu, err := strconv.Atoi(said[0]); err != nil || cpu > 100 && !raceBuild() {
		t.Errorf("the wait cost %s ms of processor time", said[0])
	}
	waiter.wait()
}

// raceBuild: a race build pays several times as much for everything.
func raceBuild() bool {
	self, err := os.Executable()
	if err != nil {
		return false
	}
	text, _ := os.ReadFile(self)
	return strings.Contains(string(text[:min(len(text), 1<<26)]), "__tsan_init")
}

// A directory that is removed under a waiter is an error, not a loop.
func TestWaitInARemovedDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "x.lock")
	owner := play(t, nil, "hold", path, "refuse")
	owner.expect("held")
	waiter := play(t, nil, "wait", path)
	waiter.expect("waiting")
	contends(t, waiter)
	stop(t, waiter) // it would take the name between the removals
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	_ = waiter.cmd.Process.Signal(syscall.SIGCONT)
	if said := waiter.expect("error"); !strings.Contains(said, "no such file or directory") || strings.Contains(said, "not taken") {
		t.Errorf("%s, want that the directory is gone", said)
	}
}

// stop stops a process, and returns when every thread of it has stopped.
func stop(t *testing.T, a *actor) {
	t.Helper()
	if err := a.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", a.cmd.Process.Pid))
		running := err != nil || len(tasks) == 0
		for _, task := range tasks {
			text, err := os.ReadFile(task)
			if _, state, found := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " "); err != nil || !found || state[0] != 'T' {
				running = true
			}
		}
		if !running {
			return
		}
	}
	t.Fatal("it has not stopped within a minute")
}

// What a wait opened is closed again, however it ends: no goroutine and no descriptor stays.
func TestWaitLeavesNothingOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	goroutines, open := runtime.NumGoroutine(), descriptors(t)
	for range 20 {
		l, err := heirlock.Acquire(t.Context(), path, heirlock.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l.Lost()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		if _, err := heirlock.Acquire(ctx, path, heirlock.Options{}); !errors.Is(err, heirlock.ErrHeld) {
			t.Error(err)
		}
		cancel()
		next := make(chan error)
		go func() {
			l, err := heirlock.Acquire(t.Context(), path, heirlock.Options{})
			if err == nil {
				err = l.Release()
			}
			next <- err
		}()
		time.Sleep(2 * time.Millisecond)
		if err := l.Release(); err != nil {
			t.Error(err)
		}
		if err := <-next; err != nil {
			t.Error(err)
		}
	}
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines || descriptors(t) > open; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines before, %d after; %d descriptors before, %d after", goroutines, runtime.NumGoroutine(), open, descriptors(t))
		}
	}
}

// crowdRole runs args[1] goroutines that wait for the lock at args[0], with random patience, until the input ends. In a
// section the counter is read, and written a moment later; what was written goes into the log.
func crowdRole(args []string) int {
	path, dir := args[0], filepath.Dir(args[0])
	n, _ := strconv.Atoi(args[1])
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		readLines(func(string) bool { return true })
		stop()
	}()
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				patience, cancel := context.WithTimeout(ctx, time.Duration(1+rand.IntN(200))*time.Millisecond)
				err := heirlock.Do(patience, path, heirlock.Options{}, func(context.Context, *heirlock.Lock) error {
					return count(filepath.Join(dir, "counter"), log)
				})
				cancel()
				if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
					fmt.Println("error", err)
				}
			}
		})
	}
	all.Wait()
	fmt.Println("done")
	return 0
}

func count(counter string, log *os.File) error {
	text, err := os.ReadFile(counter)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	n, _ := strconv.Atoi(string(text))
	if rand.IntN(4) == 0 {
		time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond)
	}
	if err := os.WriteFile(counter+".new", []byte(strconv.Itoa(n+1)), 0o600); err != nil {
		return err
	}
	if err := os.Rename(counter+".new", counter); err != nil {
		return err
	}
	_, err = fmt.Fprintf(log, "%d\n", n+1)
	return err
}

// 200 goroutines in 8 processes count under one lock, are cancelled, stopped and killed. No number is counted twice and
// none is left out, but for those whose process was killed between the count and its log; at the end the lock is free.
func TestCrowdCountsRight(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.lock")
	lasts := 3 * time.Second
	if s, err := strconv.Atoi(os.Getenv("HEIRLOCK_CROWD_SECONDS")); err == nil {
		lasts = time.Duration(s) * time.Second
	}
	crowd := make([]*actor, 8)
	for i := range crowd {
		crowd[i] = play(t, nil, "crowd", path, "25")
	}
	kills := 0
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
		i := rand.IntN(len(crowd))
		if rand.IntN(4) == 0 {
			crowd[i].kill()
			kills++
			crowd[i] = play(t, nil, "crowd", path, "25")
			continue
		}
		pid := crowd[i].cmd.Process.Pid
		_ = syscall.Kill(pid, syscall.SIGSTOP)
		time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	for _, a := range crowd {
		a.in.Close()
	}
	for _, a := range crowd {
		a.expect("done")
		a.wait()
	}
	text, err := os.ReadFile(filepath.Join(dir, "counter"))
	if err != nil {
		t.Fatal(err)
	}
	counted, _ := strconv.Atoi(string(text))
	log, err := os.Open(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	logged, last, missing := 0, 0, 0
	for scan := bufio.NewScanner(log); scan.Scan(); logged++ {
		n, err := strconv.Atoi(scan.Text())
		if err != nil || n <= last {
			t.Fatalf("%q after %d: two counted at once", scan.Text(), last)
		}
		missing, last = missing+n-last-1, n
	}
	missing += counted - last
	if missing > kills || counted != logged+missing || counted < 20 {
		t.Errorf("counted %d, logged %d, %d missing of %d kills", counted, logged, missing, kills)
	}
	t.Logf("%d sections, %d kills", counted, kills)
	if d, err := heirlock.Reclaim(path, "", heirlock.Options{}); err != nil {
		t.Errorf("%+v, %v", d, err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	hidden, _ := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(names) != 2 && len(names) != 3 || len(hidden) > 0 {
		t.Errorf("left %v %v", names, hidden)
	}
}
