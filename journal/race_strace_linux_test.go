package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
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

// A journal whose writer is driven by hand on the main thread runs under strace(1), which kills it or fails it at the
// n-th call of one kind. What it does before the journal is opened is behind an access(2) of "@open".

func init() {
	roles["steps"], roles["torn"] = stepsRole, tornRole
	if role := os.Getenv(roleVariable); role == "steps" || role == "torn" {
		runtime.LockOSThread() // an init function runs on the main thread, and strace counts calls by thread
	}
}

// stepsOptions: four frames fill a file.
func stepsOptions(files int) Options[item] {
	return Options[item]{
		MaxEventBytes: 250, MaxPendingItems: 100, MaxPendingBytes: 1 << 20, MaxFileBytes: 600, MaxFiles: files,
		Lock: heirlock.Options{Policy: heirlock.ReclaimStale},
	}
}

// stepsRole opens the journal args[0] with args[1] files, by the route of birth args[2], appends six batches, which rotate, with
// a sync in between, and closes it. It says "flushed <sequence>" behind each, or why not.
func stepsRole(args []string) int {
	files, _ := strconv.Atoi(args[1])
	switch args[2] {
	case "rename":
		forbid(unix.SYS_OPENAT)
	case "link":
		forbid(unix.SYS_OPENAT, unix.SYS_RENAMEAT2)
	}
	heirlock.Inspect(filepath.Join(filepath.Dir(args[0]), "nothing"), heirlock.Options{}) // measures the process
	syscall.Access("@open", 0)
	j, err := prepare(args[0], stepsOptions(files))
	if err != nil {
		fmt.Printf("error %v\n", err)
		return 1
	}
	fmt.Printf("open %d\n", j.Status().RetainedFiles)
	for n := range 6 {
		var last Receipt
		file, rotations := j.writer.shelf.stat, j.Status().Rotations
		for range 2 {
			last, _ = j.Submit(item{Text: strings.Repeat("x", 20*n)})
		}
		m := &boundary{upto: last.Sequence, sync: n == 3, reached: make(chan struct{})}
		j.ledger.marks = append(j.ledger.marks, m)
		j.writer.drain()
		if !j.writer.over() {
			j.ledger.reach()
		}
		<-m.reached
		if !file.SameFile(j.writer.shelf.stat) && j.Status().Rotations == rotations {
			fmt.Println("uncounted rotation")
		}
		if m.err != nil || last.Sequence == 0 {
			fmt.Printf("failed %v %v\n", m.err, j)
			break
		}
		fmt.Printf("flushed %d\n", last.Sequence)
	}
	j.ledger.drain()
	j.writer.over()
	j.writer.finish()
	if err := j.Close(context.Background()); err != nil {
		fmt.Printf("close %v\n", err)
	}
	syscall.Access("@end", 0)
	s := j.Status()
	fmt.Printf("end %s %d %d %d %d\n", s.State, s.Accepted, s.Written, s.Failed, s.RetainedFiles)
	return 0
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

// plan is one way to run the steps.
type plan struct {
	files int
	route string // unnamed, rename or link
	torn  bool   // the file that is there ends within a line
}

func (p plan) String() string { return fmt.Sprintf("%d files, %s, torn %v", p.files, p.route, p.torn) }

// scene is a journal's directory as a plan finds it: every number taken by an old file.
func (p plan) scene(t testing.TB, parent string) (path string, before shelfState) {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "scene-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path = filepath.Join(dir, "j")
	const epoch = "0198f2c4-7b1a-4c3e-9a55-3f1d2b6c8e90"
	for n := range p.files {
		text := frameText(epoch, uint64(p.files-n), `{}`)
		if n == 0 && p.torn {
			text += frameText(epoch, 99, `{}`)[:50]
		}
		inFile(t, filepath.Join(dir, generationName("j", int64(n))), text)
	}
	return path, look(t, path, stepsOptions(p.files))
}

// traced is a run of the steps under strace. Its process is that of the steps; strace is a grandchild (-D).
type traced struct {
	*actor
	log string
}

func underStrace(t testing.TB, inject, path string, p plan) *traced {
	t.Helper()
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
	argv = append(argv, "-e", "trace="+strings.Join(ofStorage, ","), self, path, strconv.Itoa(p.files), p.route)
	return &traced{actor: launch(t, env, argv), log: log}
}

// ofStorage are the calls that a journal and its lock consist of.
var ofStorage = []string{
	"openat", "newfstatat", "fstat", "fstatfs", "access", "faccessat", "flock", "fchmod", "fchown", "fcntl", "pread64", "pwrite64", "write",
	"ftruncate", "fdatasync", "fsync", "linkat", "renameat2", "unlinkat", "close", "getdents64", "inotify_init1", "inotify_add_watch",
}

// call is one system call of the main thread.
type call struct {
	name  string
	nth   int      // among the thread's calls of this name, from 1
	texts []string // its quoted arguments
}

func (c call) String() string {
	if c.name == "write" || strings.HasPrefix(c.name, "p") {
		return c.name
	}
	return strings.Join(append([]string{c.name}, c.texts...), " ")
}

var (
	callLine = regexp.MustCompile(`^(\d+) +(\w+)\((.*)`)
	quoted   = regexp.MustCompile(`"([^"]*)"`)
)

// calls are those of the main thread between "@open" and "@end", or its death. Those that print what the steps say, to
// descriptor 1, are left out.
func (tr *traced) calls() []call {
	tr.t.Helper()
	ended := regexp.MustCompile(fmt.Sprintf(`(?m)^%d +\+\+\+ `, tr.cmd.Process.Pid))
	var text []byte
	for deadline := time.Now().Add(time.Minute); !ended.Match(text); time.Sleep(time.Millisecond) { // strace may be behind
		if text, _ = os.ReadFile(tr.log); time.Now().After(deadline) {
			tr.t.Fatalf("no end in the log of strace:\n%s", text)
		}
	}
	count, on := map[string]int{}, false
	var out []call
	for line := range strings.Lines(string(text)) {
		m := callLine.FindStringSubmatch(line)
		if m == nil || m[1] != strconv.Itoa(tr.cmd.Process.Pid) {
			continue
		}
		c := call{name: m[2], nth: count[m[2]] + 1}
		count[c.name] = c.nth
		for _, q := range quoted.FindAllStringSubmatch(m[3], -1) {
			if q[1] != "" {
				c.texts = append(c.texts, q[1])
			}
		}
		switch {
		case len(c.texts) == 1 && strings.HasPrefix(c.texts[0], "@"):
			on = c.texts[0] == "@open"
		case on && !(c.name == "write" && strings.HasPrefix(m[3], "1,")):
			out = append(out, c)
		}
	}
	return out
}

// recorded runs the plan undisturbed and returns its calls.
func (p plan) recorded(t testing.TB, parent string) []call {
	t.Helper()
	path, before := p.scene(t, parent)
	tr := underStrace(t, "", path, p)
	confirmed := tr.lastFlushed(t)
	if code := tr.wait(); code != 0 || confirmed != 12 {
		t.Fatalf("undisturbed: exit status %d, %d frames", code, confirmed)
	}
	look(t, path, stepsOptions(p.files)).follows(t, before, confirmed, p.files)
	return tr.calls()
}

// recovers requires what is there after a kill or a failure, and that the next writer opens.
func (p plan) recovers(t testing.TB, path string, before shelfState, confirmed uint64) {
	t.Helper()
	opts := stepsOptions(p.files)
	now := look(t, path, opts)
	now.follows(t, before, confirmed, p.files)
	j, err := Open(path, opts)
	if p.files == 1 && errors.Is(err, errTornTail) && now.torn > 0 {
		return // and says why
	}
	if err != nil {
		t.Errorf("the next open: %v", err)
		return
	}
	if _, err := j.Submit(item{}); err != nil {
		t.Errorf("the next event: %v", err)
	}
	if err := j.Close(context.Background()); err != nil {
		t.Errorf("the next close: %v", err)
	}
	look(t, path, opts).follows(t, now, 1, p.files)
	var left []string
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // a child that was just forked holds flocks until its exec
		if left = swept(t, path, opts); len(left) == 0 || time.Now().After(deadline) {
			break
		}
	}
	if len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// swept sweeps what no lock was inherited after, and lists what is left and is no file of the journal.
func swept(t testing.TB, path string, opts Options[item]) (left []string) {
	t.Helper()
	if _, err := heirlock.Reclaim(path+".lock", "", opts.Lock); err != nil {
		t.Errorf("the last reclaim: %v", err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, ok := generationNumber("j", e.Name()); !ok {
			left = append(left, e.Name())
		}
	}
	return left
}

func sweeping(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip(err)
	}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("a race build")
	}
	if testing.Short() {
		t.Skip("hundreds of processes under strace")
	}
}

// The journal is killed as it enters each call of open, append, rotation, sync and close.
//
//	plan:   call 1 · call 2 · … · call n
//	run k:  call 1 · … · call k-1 ✗          (SIGKILL as call k is entered; it is not made)
//	then:   every confirmed frame is there, in order, once; only the oldest file is gone; the bounds hold; the next
//	        writer opens, appends and closes, and leaves nothing behind
func TestKilledAtEveryCall(t *testing.T) {
	sweeping(t)
	for _, c := range []struct {
		plan
		interesting []string
	}{
		{plan{3, "unnamed", false}, []string{
			"unlinkat j.2 | renameat2 j.1 j.2", "renameat2 j.1 j.2 | renameat2 j j.1", "renameat2 j j.1 | linkat j",
			"linkat j | newfstatat j", "write | newfstatat j.lock", "newfstatat j | fstat", "pread64 | write", "| fdatasync", "| unlinkat j.lock",
		}},
		{plan{3, "rename", true}, []string{"renameat2 j j.1 | renameat2 .heirlock- j", "flock | fcntl"}},
		{plan{2, "link", false}, []string{"linkat j j.1 | unlinkat j", "renameat2 .heirlock- j | linkat .heirlock- j", "linkat .heirlock- j | newfstatat j"}},
		{plan{1, "unnamed", false}, []string{"unlinkat j | linkat j"}},
	} {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			at := inMemory(t)
			points := c.killedEverywhere(t, at)
			t.Logf("killed at %d points", len(points))
			for _, want := range c.interesting {
				if !slices.ContainsFunc(points, func(p string) bool { return strings.Contains(p, want) }) {
					t.Errorf("no kill at %q, only at:\n%s", want, strings.Join(points, "\n"))
				}
			}
		})
	}
}

var temporary = regexp.MustCompile(`(\.heirlock-)[0-9a-f-]{36}`)

func (p plan) killedEverywhere(t *testing.T, at string) (points []string) {
	t.Helper()
	done := map[string]bool{}
	for _, k := range p.recorded(t, at) {
		if done[k.name] {
			continue
		}
		done[k.name] = true
		for n := k.nth; ; n++ {
			path, before := p.scene(t, at)
			tr := underStrace(t, fmt.Sprintf("%s:signal=KILL:when=%d", k.name, n), path, p)
			confirmed := tr.lastFlushed(t)
			code := tr.wait()
			calls := tr.calls()
			point := "begin"
			if len(calls) > 1 {
				point = temporary.ReplaceAllString(fmt.Sprintf("%v | %v", calls[len(calls)-2], calls[len(calls)-1]), "$1")
			}
			p.recovers(t, path, before, confirmed)
			if t.Failed() || code > 0 {
				t.Fatalf("%s %d, exit status %d: after a kill at %s", k.name, n, code, point)
			}
			if code == 0 {
				break
			}
			points = append(points, point)
		}
	}
	return points
}

// A sync reaches every file that was written since the last one, here behind two rotations, and the names.
func TestSyncReachesEveryFile(t *testing.T) {
	sweeping(t)
	var all strings.Builder
	for _, c := range (plan{3, "unnamed", false}).recorded(t, inMemory(t)) {
		fmt.Fprintln(&all, c)
	}
	want := "openat j.1\nfstat\nfdatasync\nclose\nnewfstatat j.2\nopenat j.2\nfstat\nfdatasync\nclose\nfdatasync\nopenat .\nfsync\nclose\n"
	if strings.Count(all.String(), want) != 1 {
		t.Errorf("not in the calls:\n%swant\n%s", &all, want)
	}
	if lock := "pwrite64\nfdatasync\nlinkat j.lock\n"; !strings.Contains(all.String(), lock) {
		t.Errorf("the lock is not durable, in the calls:\n%swant\n%s", &all, lock)
	}
}
