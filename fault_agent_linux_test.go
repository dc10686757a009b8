package heirlock_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heirlock/heirlock"
)

// The fault suite asks the library from inside odd environments. Whoever is asked is an agent: this test binary in a
// role, in whatever namespaces its prefix put it, doing what one line of JSON says and answering with one. A nil
// *agent is this test process itself.

func init() {
	roles["agent"] = agentRole
}

// request is one thing to do.
type request struct {
	Do   string // "inspect", "take", "release", "forget", "start", "exec", "reuse"
	Path string
	Opts heirlock.Options
	Argv []string // start: a program that inherits the descriptor of the lock at Path, if that was handed on
	PID  int      // reuse: the number that the started program must have
}

// answer is what came of it.
type answer struct {
	Err       string   // any error but a refusal
	Got       string   // take: the acquisition
	Inherited *verdict // take: the evidence on which
	Refused   *verdict
	Seen      *verdict // inspect
	PID       int
}

// verdict is a Diagnosis as it went over the wire.
type verdict struct {
	ID, State, Attribution, Liveness, Identity, Witness, Cause string
	ReclaimableBy                                              []heirlock.Policy
	Explanation                                                []string
	Guard                                                      *verdict
}

// String is what the tests compare: "state liveness identity witness", "-" for null.
func (v *verdict) String() string {
	or := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	return v.State + " " + v.Liveness + " " + or(v.Identity) + " " + v.Witness
}

func wireVerdict(d *heirlock.Diagnosis) *verdict {
	text, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	var v verdict
	if err := json.Unmarshal(text, &v); err != nil {
		panic(err)
	}
	return &v
}

// taken are the locks that this process holds through requests.
var taken = map[string]*heirlock.Lock{}

func agentRole([]string) int {
	fmt.Printf("ready %d\n", os.Getpid())
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var r request
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			panic(err)
		}
		text, err := json.Marshal(perform(r))
		if err != nil {
			panic(err)
		}
		fmt.Printf("answer %s\n", text)
	}
	return 0
}

func perform(r request) (a answer) {
	var err error
	switch r.Do {
	case "inspect":
		var d *heirlock.Diagnosis
		if d, err = heirlock.Inspect(r.Path, r.Opts); err == nil {
			a.Seen = wireVerdict(d)
		}
	case "take":
		err = take(r, &a)
	case "release":
		err = taken[r.Path].Release()
		delete(taken, r.Path)
	case "forget":
		clear(taken)
		runtime.GC()
		runtime.GC()
	case "start":
		a.PID, err = startInheriting(r)
	case "reuse":
		a.PID, err = startAs(r)
	case "exec":
		err = becomeOther(r)
	default:
		err = fmt.Errorf("no such request %q", r.Do)
	}
	if err != nil {
		a.Err = err.Error()
	}
	return a
}

func take(r request, a *answer) error {
	l, err := heirlock.TryAcquire(r.Path, r.Opts)
	if refused, ok := errors.AsType[*heirlock.HeldError](err); ok {
		a.Refused = wireVerdict(&refused.Diagnosis)
		return nil
	}
	if err != nil {
		return err
	}
	a.Got = l.Owner.Evidence.Acquisition
	if l.Reclaimed != nil {
		a.Inherited = wireVerdict(l.Reclaimed)
	}
	taken[r.Path] = l
	return nil
}

// startInheriting starts a program that holds a descriptor of the lock, as `heirlock run` does.
func startInheriting(r request) (int, error) {
	fd, err := taken[r.Path].Inheritable(10)
	if err != nil {
		return 0, err
	}
	defer syscall.Close(fd)
	cmd := exec.Command(r.Argv[0], r.Argv[1:]...)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}

// startAs starts a program under exactly this process number, through the kernel's own counter. Another fork may come
// between the two steps, so it tries again.
func startAs(r request) (int, error) {
	for range 1000 {
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(r.PID-1)), 0); err != nil {
			return 0, err
		}
		cmd := exec.Command(r.Argv[0], r.Argv[1:]...)
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		if cmd.Process.Pid == r.PID {
			return r.PID, nil
		}
		cmd.Process.Kill()
		cmd.Wait()
	}
	return 0, fmt.Errorf("process number %d was not to be had", r.PID)
}

// becomeOther takes the lock and becomes another program, as `heirlock exec` does. It returns only if it failed.
func becomeOther(r request) error {
	r.Opts.Exec = true
	l, err := heirlock.TryAcquire(r.Path, r.Opts)
	if err != nil {
		return err
	}
	if r.Opts.HandOn {
		if _, err := l.Inheritable(10); err != nil {
			return err
		}
	}
	return syscall.Exec(r.Argv[0], r.Argv, os.Environ())
}

// agent is an agentRole that runs.
type agent struct {
	*actor
	pid   int // as the agent itself sees it
	host  int // as the test process sees it
	pidfd int
}

// agentIn starts an agent behind a prefix, as unshare(1), and kills it at the end of the test.
func agentIn(t testing.TB, prefix ...string) *agent {
	t.Helper()
	return agentOf(t, play(t, prefix, "agent"))
}

func agentOf(t testing.TB, started *actor) *agent {
	t.Helper()
	a := &agent{actor: started}
	a.pid, _ = strconv.Atoi(a.expect("ready"))
	a.host = hostPID(t, a.cmd.Process.Pid)
	a.pidfd = openPidfd(t, a.host)
	t.Cleanup(func() { unix.PidfdSendSignal(a.pidfd, unix.SIGKILL, nil, 0) })
	return a
}

// ask has one thing done, and requires that it did not fail.
func (a *agent) ask(t testing.TB, r request) answer {
	t.Helper()
	got := a.try(t, r)
	if got.Err != "" {
		t.Fatalf("%s %s: %s", r.Do, filepath.Base(r.Path), got.Err)
	}
	return got
}

func (a *agent) try(t testing.TB, r request) (got answer) {
	t.Helper()
	if a == nil {
		return perform(r)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	a.say(string(text))
	if err := json.Unmarshal([]byte(a.expect("answer")), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// own has the agent take a lock whose name is free.
func (a *agent) own(t testing.TB, path string, opts heirlock.Options) {
	t.Helper()
	if got := a.ask(t, request{Do: "take", Path: path, Opts: opts}); got.Got == "" {
		t.Fatalf("%s is not free: %v", filepath.Base(path), got.Refused)
	}
}

// die ends the agent with SIGKILL, and waits until it is reaped, prefix and all.
func (a *agent) die(t testing.TB) {
	t.Helper()
	if err := unix.PidfdSendSignal(a.pidfd, unix.SIGKILL, nil, 0); err != nil {
		t.Fatal(err)
	}
	<-a.done
}
