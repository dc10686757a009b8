package process_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/heirlock/heirlock/process"
)

// measured skips where no evidence about processes is to be had, after it made sure that this is said.
func measured(t *testing.T) process.Observation {
	t.Helper()
	o, err := process.Self()
	if runtime.GOOS == "linux" || runtime.GOOS == "darwin" {
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	if !errors.Is(err, errors.ErrUnsupported) || o.Instance != (process.Instance{}) {
		t.Errorf("%+v, %v; want no instance and errors.ErrUnsupported", o, err)
	}
	t.Skipf("no evidence about processes on %s", runtime.GOOS)
	return o
}

// Self says what /proc says to anybody who reads it.
func TestSelf(t *testing.T) {
	o := measured(t)
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(bytes.TrimSuffix(text, []byte("\n")))
	}
	link := func(path string) string {
		text, err := os.Readlink(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return text
	}
	stat := read("/proc/self/stat")
	want := process.Instance{
		PID:       os.Getpid(),
		Platform:  "linux",
		BootID:    read("/proc/sys/kernel/random/boot_id"),
		Namespace: link("/proc/self/ns/pid") + ";" + link("/proc/self/ns/time"),
		StartID:   strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])[22-3],
	}
	if o.Instance != want || o.Presence != process.Running {
		t.Errorf("%s %+v\nwant running %+v", o.Presence, o.Instance, want)
	}
	if again, err := process.Self(); again != o || err != nil {
		t.Errorf("the second answer is another: %+v, %v", again, err)
	}
	if ns, err := process.Namespaces(os.Getpid()); ns != want.Namespace || err != nil {
		t.Errorf("Namespaces: %s, %v; want %s", ns, err, want.Namespace)
	}
}

// A process finds itself, and finds a child that it started, until that has exited and again after it was waited for.
func TestObserve(t *testing.T) {
	self := measured(t)
	o, err := process.Observe(os.Getpid())
	if err != nil || o != self {
		t.Errorf("%+v, %v; want %+v", o, err, self)
	}
	if id, reason := process.Compare(self.Instance, self.PidfdID, self.Instance, o, err); id != process.Matched || reason != "" {
		t.Errorf("%s (%s), want matched", id, reason)
	}

	child := exec.Command("cat")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	started, err := process.Observe(child.Process.Pid)
	if err != nil || started.Presence != process.Running || !started.Instance.Valid() || started.Instance.PID != child.Process.Pid {
		t.Fatalf("a child that runs: %+v, %v", started, err)
	}
	compare := func() process.Identity {
		now, err := process.Observe(child.Process.Pid)
		id, _ := process.Compare(started.Instance, started.PidfdID, self.Instance, now, err)
		return id
	}
	if id := compare(); id != process.Matched {
		t.Errorf("a child that runs: %s, want matched", id)
	}
	in.Close()
	out.Read(make([]byte, 1)) // end of file: the child is about to exit
	for compare() == process.Matched {
		runtime.Gosched()
	}
	if now, err := process.Observe(child.Process.Pid); now.Presence != process.Exited {
		t.Errorf("a child nobody waited for: %+v, %v; want exited", now, err)
	}
	if id := compare(); id != process.PIDGone {
		t.Errorf("a child nobody waited for: %s, want pid-gone", id)
	}
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
	if now, err := process.Observe(child.Process.Pid); now.Presence != process.Absent || err != nil {
		t.Errorf("a child that was waited for: %+v, %v; want absent", now, err)
	}
}

// A thread's number names no process.
func TestObserveThread(t *testing.T) {
	measured(t)
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	threads := 0
	for _, task := range tasks {
		n, err := strconv.Atoi(task.Name())
		if err != nil || n == os.Getpid() {
			continue
		}
		o, err := process.Observe(n)
		if o.Presence != process.Absent || err != nil {
			t.Errorf("thread %d: %+v, %v; want absent", n, o, err)
		}
		threads++
	}
	if threads == 0 {
		t.Error("this process has no second thread")
	}
}
