package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Tests with several processes start the test binary again, in a role. A role prints lines that its parent waits for, and
// reads lines that its parent sends.

const roleVariable = "HEIRLOCK_TEST_ROLE"

// roles are the programs that the test binary can become; a role's result is its exit status.
var roles = map[string]func(args []string) int{}

func TestMain(m *testing.M) {
	if name := os.Getenv(roleVariable); name != "" {
		role, ok := roles[name]
		if !ok {
			fmt.Fprintf(os.Stderr, "no role %q\n", name)
			os.Exit(99)
		}
		os.Exit(role(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// actor is one running role.
type actor struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
	done  chan struct{}
	err   error
}

// play starts a role.
func play(t testing.TB, role string, args ...string) *actor {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return launch(t, append([]string{roleVariable + "=" + role}, os.Environ()...), append([]string{self}, args...))
}

// launch starts any program as an actor.
func launch(t testing.TB, env, argv []string) *actor {
	t.Helper()
	a := &actor{t: t, cmd: exec.Command(argv[0], argv[1:]...), lines: make(chan string, 1<<16), done: make(chan struct{})}
	a.cmd.Env, a.cmd.Stderr = env, os.Stderr
	var err error
	if a.in, err = a.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.kill)
	go func() {
		scan := bufio.NewScanner(out)
		scan.Buffer(nil, 1<<20)
		for scan.Scan() {
			a.lines <- scan.Text()
		}
		close(a.lines)
		a.err = a.cmd.Wait()
		close(a.done)
	}()
	return a
}

// expect waits for the next line and requires that it begins so; it returns the rest.
func (a *actor) expect(prefix string) string {
	a.t.Helper()
	select {
	case line, ok := <-a.lines:
		if rest, found := strings.CutPrefix(line, prefix); ok && found {
			return strings.TrimSpace(rest)
		}
		a.t.Fatalf("got line %q (open: %v), want %q", line, ok, prefix)
	case <-time.After(time.Minute):
		a.t.Fatalf("no line within a minute, want %q", prefix)
	}
	return ""
}

// kill ends the actor with SIGKILL and waits until it is reaped.
func (a *actor) kill() {
	a.cmd.Process.Kill()
	<-a.done
}

// wait closes the actor's input, waits for its end and returns its exit status, or -1 for a signal.
func (a *actor) wait() int {
	a.t.Helper()
	a.in.Close()
	<-a.done
	var exit *exec.ExitError
	if errors.As(a.err, &exit) {
		return exit.ExitCode()
	}
	if a.err != nil {
		a.t.Fatal(a.err)
	}
	return 0
}
