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
	"time"

	"golang.org/x/sys/unix"
)

// Processes: started in a session of their own, followed down to the one at work, and watched through pidfds, so that
// what the matrix says about their life never rests on the lock under test.

// crew is a started command and the processes below it.
type crew struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
	heard []string
	chain []member // from the command to the process at work; one child each
	ended bool     // reaped
}

type member struct {
	pid, pidfd int
}

// start starts a command. Both of its outputs come as lines.
func start(argv, env []string) (*crew, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &crew{cmd: exec.Command(argv[0], argv[1:]...), lines: make(chan string, 4096)}
	c.cmd.Stdout, c.cmd.Stderr, c.cmd.Env = w, w, append(os.Environ(), env...)
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, out, err := os.Pipe() // not StdinPipe, which Wait closes although others may still read it
	if err != nil {
		return nil, errors.Join(err, r.Close(), w.Close())
	}
	c.cmd.Stdin, c.in = in, out
	err = c.cmd.Start()
	in.Close()
	w.Close()
	if err != nil {
		return nil, errors.Join(err, r.Close(), out.Close())
	}
	go func() {
		scan := bufio.NewScanner(r)
		for scan.Scan() {
			c.lines <- scan.Text()
		}
		r.Close()
		close(c.lines)
	}()
	return c, nil
}

// await waits for a line that begins so. The error carries everything that was said instead.
func (c *crew) await(prefix string, limit time.Duration) (string, error) {
	over := time.After(limit)
	for {
		select {
		case line, open := <-c.lines:
			if !open {
				return "", fmt.Errorf("ended without %s: %s", prefix, c.words())
			}
			if rest, found := strings.CutPrefix(line, prefix); found {
				return strings.TrimSpace(rest), nil
			}
			c.heard = append(c.heard, line)
		case <-over:
			return "", errHung
		}
	}
}

var errHung = errors.New("no answer")

func (c *crew) words() string { return strings.Join(c.heard, " / ") }

// follow opens a pidfd of every process from the command down.
func (c *crew) follow() error {
	for pid := c.cmd.Process.Pid; pid != 0; pid = firstChild(pid) {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return fmt.Errorf("pidfd_open of process %d: %w", pid, err)
		}
		c.chain = append(c.chain, member{pid, fd})
	}
	return nil
}

func (c *crew) worker() member { return c.chain[len(c.chain)-1] }

func firstChild(pid int) int {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		if first, _, found := strings.Cut(string(text), " "); found {
			child, _ := strconv.Atoi(first)
			return child
		}
	}
	return 0
}

// alive asks the kernel. A process that is being traced or stopped is alive; a zombie is not, unless a thread of it runs.
func (m member) alive() bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(m.pidfd), Events: unix.POLLIN}}, 0)
	return err == nil && n == 0
}

// awaitEnd waits until the process has exited.
func (m member) awaitEnd(limit time.Duration) error {
	for end := time.Now().Add(limit); m.alive(); {
		if time.Now().After(end) {
			return fmt.Errorf("process %d does not end", m.pid)
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(m.pidfd), Events: unix.POLLIN}}, 100)
	}
	return nil
}

// signal reaches every process of the session's first group.
func (c *crew) signal(s syscall.Signal) { _ = syscall.Kill(-c.cmd.Process.Pid, s) }

// kill ends all of them with SIGKILL and waits until each is reaped, except the first if it is to stay a zombie.
func (c *crew) kill(reap bool) error {
	c.signal(syscall.SIGKILL)
	for _, m := range c.chain {
		if err := m.awaitEnd(10 * time.Second); err != nil {
			return err
		}
	}
	if reap {
		c.reap()
	}
	for _, m := range c.chain[min(1, len(c.chain)):] {
		for end := time.Now().Add(10 * time.Second); exists(m.pid); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				return fmt.Errorf("nobody reaps process %d", m.pid)
			}
		}
	}
	return nil
}

func exists(pid int) bool {
	_, err := os.Stat("/proc/" + strconv.Itoa(pid))
	return err == nil
}

func (c *crew) reap() {
	if !c.ended {
		_ = c.cmd.Wait()
		c.ended = true
	}
}

// close ends whatever is left.
func (c *crew) close() {
	c.signal(syscall.SIGCONT)
	c.signal(syscall.SIGKILL)
	c.in.Close()
	c.reap()
	for _, m := range c.chain {
		_ = unix.PidfdSendSignal(m.pidfd, unix.SIGKILL, nil, 0)
		unix.Close(m.pidfd)
	}
	c.chain = nil
}

// startAs starts a program under exactly this number, through the kernel's own counter. Another fork may come between
// the two steps, so it tries again.
func startAs(pid int, argv []string) (*exec.Cmd, error) {
	for range 2000 {
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0); err != nil {
			return nil, notHere(err.Error())
		}
		cmd := exec.Command(argv[0], argv[1:]...)
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		if cmd.Process.Pid == pid {
			return cmd, nil
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	return nil, fmt.Errorf("process number %d was not to be had", pid)
}

// freeNumber is a process number that nobody has here.
func freeNumber() int {
	for pid := 30011; pid > 1000; pid -= 7 {
		if !exists(pid) && syscall.Kill(pid, 0) == syscall.ESRCH {
			return pid
		}
	}
	return 0
}
