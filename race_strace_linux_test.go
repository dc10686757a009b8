package heirlock_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/heirlock/heirlock"
)

// A program of a few steps that runs on one thread under strace(1), which kills it, stops it or fails it at the n-th
// call of one kind. Each step is announced by an access(2) of "@<step>", so that it can be found in the log.

func init() {
	roles["steps"] = steps
	if os.Getenv(roleVariable) == "steps" {
		runtime.LockOSThread() // an init function runs on the main thread, and strace counts calls by thread
	}
}

// steps does args[2:], on the lock args[0], with the options args[1]: words that name a policy, a mode, or a route of
// birth that is to be used. A failed acquire ends it; a failed release is tried once more.
func steps(args []string) int {
	opts := heirlock.Options{}
	for word := range strings.SplitSeq(args[1], ",") {
		switch word {
		case "rename":
			forbid(unix.SYS_OPENAT)
		case "link":
			forbid(unix.SYS_OPENAT, unix.SYS_RENAMEAT2)
		case "durable":
			opts.Durable = true
		case "0666":
			opts.Mode = 0o666
		default:
			opts.Policy = heirlock.Policy(word)
		}
	}
	w := &walker{path: args[0], opts: opts}
	for _, step := range args[2:] {
		syscall.Access("@"+step, 0)
		if w.step(step) {
			continue
		}
		if args[len(args)-1] == "pause" {
			w.step("pause")
		}
		return 1
	}
	syscall.Access("@end", 0)
	return 0
}

type walker struct {
	path string
	opts heirlock.Options
	lock *heirlock.Lock
}

func (w *walker) step(name string) bool {
	switch name {
	case "measure":
		heirlock.Inspect(filepath.Join(filepath.Dir(w.path), "nothing"), w.opts)
	case "pause":
		fmt.Println("paused")
		w.pause()
	case "acquire":
		var err error
		w.lock, err = heirlock.TryAcquire(w.path, w.opts)
		return w.say(err, func() string {
			inherited, measured := "-", "void"
			if w.lock.Reclaimed != nil {
				inherited = string(w.lock.Reclaimed.Identity)
			}
			if w.lock.Owner.Process != nil {
				measured = "measured"
			}
			return "held " + w.lock.Owner.Evidence.Acquisition + " " + inherited + " " + measured
		})
	case "release":
		released := func() string { return "released" }
		first := w.say(w.lock.Release(), released)
		return first || w.say(w.lock.Release(), released)
	case "reclaim":
		d, err := heirlock.Reclaim(w.path, "", w.opts)
		return w.say(err, func() string { return "reclaimed " + d.State })
	}
	return true
}

func (w *walker) pause() {
	var b [1]byte
	for b[0] != '\n' {
		if n, _ := syscall.Read(0, b[:]); n <= 0 {
			return
		}
	}
}

func (w *walker) say(err error, success func() string) bool {
	var refused *heirlock.HeldError
	switch {
	case errors.As(err, &refused):
		text, _ := json.Marshal(refused.Diagnosis)
		fmt.Printf("refused %s\n", text)
	case err != nil:
		fmt.Printf("error %v\n", err)
	default:
		fmt.Println(success())
	}
	return err == nil
}

// forbid makes the kernel answer like a filesystem that has no unnamed files (openat with O_TMPFILE: EOPNOTSUPP), or no
// renameat2 (EINVAL): seccomp(2), for this thread.
func forbid(numbers ...uint32) {
	const unnamed = 0x400000 // __O_TMPFILE, asm-generic/fcntl.h
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	ret := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	prog := []unix.SockFilter{
		load(0), // struct seccomp_data: nr
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: numbers[0], Jf: 3},
		load(16 + 2*8), // args[2], the flags of openat
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: unnamed, Jf: 1},
		ret(unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)),
	}
	for _, nr := range numbers[1:] {
		prog = append(prog, load(0), unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: nr, Jf: 1},
			ret(unix.SECCOMP_RET_ERRNO|uint32(unix.EINVAL)))
	}
	prog = append(prog, ret(unix.SECCOMP_RET_ALLOW))
	filter := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0); err != nil {
		fmt.Println("error", err)
		os.Exit(98)
	}
}

// traced is a program of steps under strace. Its process is the program's; strace is a grandchild (-D).
type traced struct {
	*actor
	log string
}

// underStrace starts a program of steps. The injection is strace's, "" for none.
func underStrace(t testing.TB, inject string, s *scene, options string, steps ...string) *traced {
	t.Helper()
	needs(t, "strace")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "strace")
	argv := []string{"strace", "-D", "-f", "-q", "-s", "300", "-o", log}
	if inject != "" {
		argv = append(argv, "-e", "inject="+inject)
	}
	env := append([]string{roleVariable + "=steps", "GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1"}, os.Environ()...)
	argv = append(argv, "-e", "trace=!"+strings.Join(ofTheRuntime, ","), self, s.path, options)
	return &traced{actor: launch(t, env, append(argv, steps...)), log: log}
}

// ofTheRuntime are calls that no step depends on: memory, scheduling, the runtime's own descriptors.
var ofTheRuntime = []string{
	"mmap", "munmap", "mprotect", "madvise", "brk", "futex", "nanosleep", "clock_gettime", "clock_nanosleep", "sched_yield",
	"sched_getaffinity", "getpid", "gettid", "tgkill", "clone", "clone3", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn",
	"sigaltstack", "epoll_create1", "epoll_ctl", "epoll_pwait", "eventfd2", "getrandom", "prctl", "uname", "fcntl", "write", "exit_group",
}

// call is one system call of the main thread.
type call struct {
	step  string // the announcement before it
	name  string
	nth   int      // among the process's calls of this name, from 1
	texts []string // its quoted arguments
}

func (c call) String() string {
	if c.name == "pwrite64" || c.name == "pread64" || c.name == "read" {
		return c.name
	}
	return strings.Join(append([]string{c.name}, c.texts...), " ")
}

var (
	callLine = regexp.MustCompile(`^(\d+) +(\w+)\((.*)`)
	quoted   = regexp.MustCompile(`"([^"]*)"`)
)

// calls are those of the main thread since the announcement of a step, the announcements left out. The process has
// ended; strace may still have to write that down.
func (tr *traced) calls(from string) []call {
	tr.t.Helper()
	text := tr.logged(tr.ended().MatchString)
	count, step := map[string]int{}, ""
	var out []call
	for line := range strings.Lines(text) {
		m := callLine.FindStringSubmatch(line)
		if m == nil || m[1] != strconv.Itoa(tr.cmd.Process.Pid) {
			continue
		}
		c := call{step: step, name: m[2], nth: count[m[2]] + 1}
		count[c.name] = c.nth
		for _, q := range quoted.FindAllStringSubmatch(m[3], -1) {
			if q[1] != "" {
				c.texts = append(c.texts, q[1])
			}
		}
		if len(c.texts) == 1 && strings.HasPrefix(c.texts[0], "@") {
			step = c.texts[0][1:]
		} else if step == from || len(out) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// kinds are the names of calls and the first of each.
func kinds(calls []call) []call {
	var out []call
	for _, c := range calls {
		if !slices.ContainsFunc(out, func(k call) bool { return k.name == c.name }) {
			out = append(out, c)
		}
	}
	return out
}

// ended matches a log in which the main thread has ended.
func (tr *traced) ended() *regexp.Regexp {
	return regexp.MustCompile(fmt.Sprintf(`(?m)^%d +\+\+\+ `, tr.cmd.Process.Pid))
}

// logged waits for something in the log.
func (tr *traced) logged(enough func(text string) bool) string {
	tr.t.Helper()
	var text []byte
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if text, _ = os.ReadFile(tr.log); enough(string(text)) {
			return string(text)
		}
	}
	tr.t.Fatalf("not in the log of strace within a minute:\n%s", text[max(0, len(text)-2000):])
	return ""
}

// stopped waits until the injected SIGSTOP has stopped the process: the call has been made, the next has not. False if the
// process went to its end.
func (tr *traced) stopped() bool {
	tr.t.Helper()
	const stop = "--- stopped by SIGSTOP ---"
	end := tr.ended()
	text := tr.logged(func(text string) bool { return strings.Contains(text, stop) || end.MatchString(text) })
	return strings.Contains(text, stop)
}

func (tr *traced) proceed() { tr.cmd.Process.Signal(syscall.SIGCONT) }
