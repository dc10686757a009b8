package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The command is its own workers: started with a word that begins with a colon, it plays that role.

var roles map[string]func(args []string) int

func init() {
	if slices.Contains(os.Args, ":leaderless") {
		runtime.LockOSThread() // the main goroutine stays on the first thread, to end it
	}
	roles = map[string]func(args []string) int{
		":work": work, ":leaderless": leaderless, ":got": got, ":daemon": daemon, ":linger": linger,
		":lib": library, ":section": section, ":racer": racer, ":farmer": farmer, ":farmhand": farmhand,
	}
}

func play(args []string) int {
	role, ok := roles[args[0]]
	if !ok {
		fmt.Fprintf(os.Stderr, "no role %q\n", args[0])
		return 99
	}
	return role(args[1:])
}

// work is what the owner's lock protects: it goes on until its input ends.
func work([]string) int {
	fmt.Println("HELD", os.Getpid())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// got is what a contender does once it is let in. It stays until the other side has looked who else is at work.
func got([]string) int {
	fmt.Println("GOT", os.Getpid())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// leaderless works on in a second thread after its first has ended: /proc says Z, and the process lives.
func leaderless([]string) int {
	pid := os.Getpid()
	go func() {
		for stateOf(pid) != "Z" {
			time.Sleep(time.Millisecond)
		}
		os.Exit(work(nil))
	}()
	_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
	return 1
}

func stateOf(pid int) string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	return f[0]
}

// daemon leaves a process behind, with whatever descriptors it was given, and ends.
func daemon([]string) int {
	self, err := os.Executable()
	if err != nil {
		return 1
	}
	cmd := exec.Command(self, ":linger")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return 1
	}
	fmt.Println("LEFT", cmd.Process.Pid)
	return 0
}

// linger is the daemon; whoever wants its end kills it.
func linger([]string) int {
	time.Sleep(10 * time.Minute)
	return 0
}

// library takes a lock of a Go library, plays the role that follows, and gives it back: NAME hold|try PATH ROLE…
func library(args []string) int {
	name, try, path := args[0], args[1] == "try", args[2]
	release, err := libraries[name](path, try)
	if err != nil {
		fmt.Println("REFUSED", err)
		return 75
	}
	code := play(args[3:])
	if err := release(); err != nil {
		fmt.Println("RELEASE", err)
	}
	return code
}

// section is a critical section of 3 ms that notices another: a file that only one can make at a time.
func section(args []string) int {
	f, err := os.OpenFile(args[0], os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if errors.Is(err, os.ErrExist) {
		fmt.Println("DOUBLE")
		return 0
	}
	if err != nil {
		fmt.Println("ERROR", err)
		return 1
	}
	f.Close()
	time.Sleep(3 * time.Millisecond)
	if err := os.Remove(args[0]); err != nil { // somebody inside took it for a leftover: nobody here does that
		fmt.Println("DOUBLE")
		return 0
	}
	fmt.Println("ONE")
	return 0
}
