package locks

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heirlock/heirlock/bench/timings/role"
)

// mono is CLOCK_MONOTONIC in nanoseconds, which all processes share.
func mono() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

// Hold is the role that takes the lock at each line "take" and gives it back at "give", and says when.
func Hold(args []string) error {
	take := lockers[args[0]]
	var release func() error
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		switch in.Text() {
		case "take":
			fmt.Println("waiting")
			var err error
			if release, err = take(args[1]); err != nil {
				return err
			}
			fmt.Println("held", mono())
		case "give":
			at := mono()
			if err := release(); err != nil {
				return err
			}
			fmt.Println("gave", at)
		}
	}
	return nil
}

// actor is a process in a role.
type actor struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(as string, args ...string) (*actor, error) {
	cmd, err := role.Command(as, args)
	if err != nil {
		return nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &actor{cmd, in, bufio.NewReader(out)}, cmd.Start()
}

func (a *actor) say(line string) error {
	_, err := fmt.Fprintln(a.in, line)
	return err
}

// expect reads one line, which is the word and a time.
func (a *actor) expect(word string) (int64, error) {
	line, err := a.out.ReadString('\n')
	got, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if err != nil || got != word {
		return 0, fmt.Errorf("a process says %q, want %s: %w", line, word, err)
	}
	if rest == "" {
		return 0, nil
	}
	return strconv.ParseInt(rest, 10, 64)
}

// wait has the process begin to take the lock, and returns when it is about to.
func (a *actor) wait() error {
	if err := a.say("take"); err != nil {
		return err
	}
	_, err := a.expect("waiting")
	return err
}

// holder is a process that waits for the lock; with held it has it already.
func holder(name, path string, held bool) (*actor, error) {
	a, err := start("hold", name, path)
	if err != nil {
		return nil, err
	}
	if err = a.wait(); err == nil && held {
		_, err = a.expect("held")
	}
	if err != nil {
		a.stop()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return a, nil
}

func (a *actor) stop() {
	_ = a.in.Close()
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait()
}

// blocked gives a waiter the time to come to rest.
func blocked() { time.Sleep(20 * time.Millisecond) }
