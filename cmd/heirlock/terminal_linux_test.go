package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openTerminal makes a pseudo-terminal, pts(4).
func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skipf("unlock the pseudo-terminal: %v", err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Skipf("number of the pseudo-terminal: %v", err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("open the pseudo-terminal: %v", err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// The terminal sends one ^C to run and to its command, both in its foreground group. Run must not pass it on a second
// time: strace(1) watches every signal that run sends, because two that are pending together would arrive as one. TERM
// to run alone is passed on, and ends the test.
//
//	terminal  ^C ──▶ run, command          (once each)
//	run                                     must not send INT
//	test      TERM ──▶ run ──▶ command      prints its count
func TestInterruptOfATerminalArrivesOnce(t *testing.T) {
	master, slave := openTerminal(t)
	bin := buildHere(t)
	script := `import os,signal,sys
n=0
def hit(*_):
    global n; n+=1; print("interrupted", n, flush=True)
signal.signal(signal.SIGINT, hit)
def end(*_):
    print("count", n, flush=True); sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("ready", os.getppid(), flush=True)
while True: signal.pause()
`
	for _, tool := range []string{"python3", "strace"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s", tool)
		}
	}
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command("strace", "-f", "-qq", "-o", trace, "-e", "trace=kill,pidfd_send_signal,tkill", "-e", "signal=none", bin, "run", filepath.Join(t.TempDir(), "x.lock"), "--", "python3", "-c", script)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	slave.Close()
	lines := make(chan string, 100)
	go func() {
		scan := bufio.NewScanner(master)
		for scan.Scan() {
			lines <- strings.TrimSpace(scan.Text())
		}
		close(lines)
	}()
	expect := func(want string) string {
		t.Helper()
		select {
		case line := <-lines:
			_, rest, found := strings.Cut(line, want)
			if !found {
				t.Fatalf("got %q, want %q", line, want)
			}
			return strings.TrimSpace(rest)
		case <-time.After(time.Minute):
			t.Fatalf("no %q within a minute", want)
		}
		return ""
	}
	run, err := strconv.Atoi(expect("ready"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(master, "\x03"); err != nil {
		t.Fatal(err)
	}
	expect("interrupted 1")
	if err := syscall.Kill(run, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	expect("count 1")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	sent, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(sent), "SIGINT") || strings.Count(string(sent), "SIGTERM") != 1 {
		t.Errorf("run sent these signals, want one SIGTERM:\n%s", sent)
	}
}

// As process 1 of a namespace, run reaps what its command orphans, and still reports the command's own status.
//
//	run (1) ── command ── sh ── orphan: outlives sh, is adopted by 1, ends
func TestReapsOrphansAsProcessOne(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a PID namespace needs root")
	}
	bin := buildHere(t)
	// The command makes an orphan that ends at once, then waits until no zombie of process 1 is left.
	script := `(sh -c 'exit 0' & ) ; (sh -c 'exit 0' & )
n=0
while grep -l '^State:	Z' /proc/[0-9]*/status >/dev/null 2>&1; do n=$((n+1)); test $n -lt 500 || exit 1; sleep 0.01; done
exit 5`
	cmd := exec.Command("unshare", "-pf", "--mount-proc", "--kill-child", bin, "run", filepath.Join(t.TempDir(), "x.lock"), "-c", script)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Skipf("unshare: %v", err)
	}
	if got := cmd.ProcessState.ExitCode(); got != 5 {
		t.Errorf("exit status %d, want the command's own 5\n%s", got, out)
	}
}

// On a terminal a wait shows how long it has lasted, in one line that goes when the wait ends. Elsewhere nothing of the
// kind is printed: the scripts compare what is said.
func TestLiveLineOnATerminal(t *testing.T) {
	master, slave := openTerminal(t)
	bin, lock := buildHere(t), filepath.Join(t.TempDir(), "x.lock")
	owner := exec.Command(bin, "run", lock, "-c", "echo held; read end")
	in, err := owner.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("%q, %v", line, err)
	}
	waiter := exec.Command(bin, "run", lock, "--", "true")
	waiter.Stderr = slave
	if err := waiter.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	var shown strings.Builder
	buf := make([]byte, 1024)
	for !strings.Contains(shown.String(), "x.lock: 1s") && shown.Len() < 4096 {
		n, err := master.Read(buf)
		if err != nil {
			t.Fatalf("%v after %q", err, shown.String())
		}
		shown.Write(buf[:n])
	}
	fmt.Fprintln(in)
	if err := errors.Join(waiter.Wait(), owner.Wait()); err != nil {
		t.Error(err)
	}
	for {
		n, err := master.Read(buf)
		shown.Write(buf[:n])
		if err != nil {
			break // the last writer is gone
		}
	}
	if text := shown.String(); !strings.HasSuffix(text, "\r\x1b[K") || strings.Count(text, "\n") != 1 {
		t.Errorf("%q, want one line of words, and the live line gone", text)
	}
}
