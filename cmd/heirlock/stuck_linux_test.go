package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func buildHere(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "heirlock")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

func need(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s", tool)
		}
	}
}

// TERM comes while the first attempt is in the middle of its link: the command never starts. Whoever catches it gives the
// lock back that it still takes; whoever does not yet is killed before it has one.
//
//	run    … linkat ─────(delayed)───── = 0 · release · exit 143
//	exec   … linkat ─────(delayed) killed
//	test            TERM
func TestSignalDuringAnAttempt(t *testing.T) {
	need(t, "strace")
	bin := buildHere(t)
	for _, verb := range []string{"run", "exec"} {
		dir := t.TempDir()
		ran, trace := filepath.Join(dir, "ran"), filepath.Join(t.TempDir(), "trace")
		cmd := exec.Command("strace", "-f", "-qq", "-o", trace, "-e", "trace=linkat", "-e", "inject=linkat:delay_enter=700000",
			bin, verb, filepath.Join(dir, "x.lock"), "-c", "echo >"+ran)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pid := tracee(t, cmd.Process.Pid)
		waitUntilBorn(t, pid)
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if code := status143(cmd.ProcessState); code != 143 {
			t.Errorf("%s: exit status %d, want 143", verb, code)
		}
		if names, _ := os.ReadDir(dir); len(names) > 0 {
			t.Errorf("%s: left %v", verb, names)
		}
	}
}

// waitUntilBorn waits until the process has a file that has no name yet: its link comes next.
func waitUntilBorn(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		links, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
		for _, link := range links {
			if to, _ := os.Readlink(link); strings.HasSuffix(to, "(deleted)") {
				return
			}
		}
	}
	t.Fatal("it has no file without a name: are there none here?")
}

// status143 is the exit status as a shell sees it: ended by a signal, or with the status that stands for one.
func status143(state *os.ProcessState) int {
	if ws := state.Sys().(syscall.WaitStatus); ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}

// tracee is the process that strace started.
func tracee(t *testing.T, strace int) int {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		text, _ := os.ReadFile("/proc/" + strconv.Itoa(strace) + "/task/" + strconv.Itoa(strace) + "/children")
		for _, child := range strings.Fields(string(text)) {
			comm, _ := os.ReadFile("/proc/" + child + "/comm")
			if pid, err := strconv.Atoi(child); err == nil && strings.TrimSpace(string(comm)) == "heirlock" {
				return pid
			}
		}
	}
	t.Fatal("strace started nothing within a minute")
	return 0
}

// A file server that does not answer keeps neither the deadline nor a signal from being heard.
//
//	bindfs   stopped ────────────────────────────────
//	run -w   stat x.lock …… 75     run   stat x.lock …… TERM ── 143
func TestFileServerThatDoesNotAnswer(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a FUSE mount needs root")
	}
	need(t, "bindfs")
	bin, mnt := buildHere(t), t.TempDir()
	server := exec.Command("bindfs", "-f", t.TempDir(), mnt)
	if err := server.Start(); err != nil {
		t.Skipf("bindfs: %v", err)
	}
	defer func() {
		server.Process.Signal(syscall.SIGCONT)
		exec.Command("umount", "-l", mnt).Run()
		server.Process.Kill()
		server.Wait()
	}()
	probe := filepath.Join(mnt, "probe")
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		var st syscall.Statfs_t
		if syscall.Statfs(mnt, &st) == nil && st.Type == 0x65735546 {
			break
		}
		if time.Now().After(end) {
			t.Skip("bindfs mounts nothing here")
		}
	}
	if err := os.WriteFile(probe, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	server.Process.Signal(syscall.SIGSTOP)
	lock := filepath.Join(mnt, "x.lock")
	waits := exec.Command("timeout", "-s", "KILL", "30", bin, "run", "-w", "0.2", lock, "--", "true")
	out, _ := waits.CombinedOutput()
	if !strings.Contains(string(out), "no answer from its filesystem: the wait ran out") || waits.ProcessState.ExitCode() != 75 {
		t.Errorf("run -w: %s (%v)", out, waits.ProcessState)
	}
	cmd := exec.Command(bin, "run", lock, "--", "true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitUntilBlocked(t, cmd.Process.Pid)
	cmd.Process.Signal(syscall.SIGTERM)
	// A request that the server has begun cannot be given up, not even by a dying process: it goes on when the server does.
	resume := time.AfterFunc(10*time.Second, func() { server.Process.Signal(syscall.SIGCONT) })
	_ = cmd.Wait()
	resume.Stop()
	if code := status143(cmd.ProcessState); code != 143 {
		t.Errorf("after TERM: exit status %d, want 143", code)
	}
}

// waitUntilBlocked waits until a thread of the process sleeps in a call to the FUSE server.
func waitUntilBlocked(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/wchan")
		for _, task := range tasks {
			if text, _ := os.ReadFile(task); strings.Contains(string(text), "fuse") || strings.Contains(string(text), "request_wait") {
				return
			}
		}
	}
	t.Fatal("it does not wait for the server")
}
