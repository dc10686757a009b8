package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// unread is a pipe that is full, and its reader.
func unread(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	for _, piece := range []int{4096, 1} {
		for err = nil; err == nil; {
			w.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
			_, err = w.Write(bytes.Repeat([]byte{'\n'}, piece))
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
	return r, w
}

// deafened starts a writer whose stderr is full, and returns when it has read its lines: 1, two hundred that are refused, 2.
func deafened(t *testing.T) (cmd *exec.Cmd, path string, in, said *os.File) {
	t.Helper()
	bin := buildHere(t)
	path = filepath.Join(t.TempDir(), "x")
	said, stderr := unread(t)
	r, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	if _, err := in.WriteString("1\n" + strings.Repeat("w\n", 200) + "2\n"); err != nil { // one write, one read
		t.Fatal(err)
	}
	cmd = exec.Command(bin, "journal", "write", path)
	cmd.Stdin, cmd.Stderr = r, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	stderr.Close()
	awaitText(t, path, `"event":1}`)
	return cmd, path, in, said
}

func awaitText(t *testing.T, path, want string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		text, _ := os.ReadFile(path)
		if strings.Contains(string(text), want) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: no %s within a minute", path, want)
		}
	}
}

// endsWith waits for the exit status; the minute is only there to end a failed test.
func endsWith(t *testing.T, cmd *exec.Cmd, status int) {
	t.Helper()
	timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer timer.Stop()
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != status {
		t.Errorf("exit status %d, want %d", got, status)
	}
}

// Nobody reads what the writer says. A signal ends it all the same, with all that was read; a failure does.
func TestEndsAlthoughNobodyListens(t *testing.T) {
	t.Run("signal", func(t *testing.T) {
		cmd, path, _, _ := deafened(t)
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		endsWith(t, cmd, exitRefused)
		awaitText(t, path, `"sequence":2,"event":2}`)
		if _, err := os.Lstat(path + ".lock"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the lock: %v", err)
		}
	})
	t.Run("failure", func(t *testing.T) {
		cmd, path, _, _ := deafened(t)
		if err := os.Remove(path + ".lock"); err != nil {
			t.Fatal(err)
		}
		endsWith(t, cmd, exitSystem)
	})
}

// Until then the words wait for their reader: not one is lost, and the end is the status.
func TestWordsWaitForTheirReader(t *testing.T) {
	cmd, path, in, said := deafened(t)
	in.Close()
	text, err := io.ReadAll(said)
	if err != nil {
		t.Fatal(err)
	}
	endsWith(t, cmd, exitRefused)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 201 || !strings.HasPrefix(lines[199], "heirlock: line 201 refused: ") || !strings.HasPrefix(lines[200], `{"state":"closed",`) {
		t.Errorf("%d lines, the last is %s", len(lines), lines[len(lines)-1])
	}
	awaitText(t, path, `"sequence":2,"event":2}`)
}
