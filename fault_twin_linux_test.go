package heirlock_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

func init() {
	roles["twin"] = twin
	roles["twin-try"] = twinTry
}

// twin runs in a new PID namespace behind the /proc of the one above. It starts agents, with its own input and output,
// until one has the same number in both.
//
// Both namespaces count their forks alike, so that the distance is constant as long as nobody else forks: the inner
// counter is set forward by the distance that the last try reported.
func twin([]string) int {
	const counter = "/proc/sys/kernel/ns_last_pid"
	self, err := os.Executable()
	if err != nil {
		return 2
	}
	for range 1000 {
		var number bytes.Buffer
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), roleVariable+"=twin-try")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, &number
		if err := cmd.Run(); err == nil {
			return 0
		}
		outer, err := strconv.Atoi(number.String())
		if err != nil {
			fmt.Printf("no twin: %s, %v\n", number.String(), err)
			return 3
		}
		// The last try may have taken some numbers for its threads, in both namespaces alike.
		last, err := os.ReadFile(counter)
		if err != nil {
			return 4
		}
		inner, _ := strconv.Atoi(string(bytes.TrimSpace(last)))
		if err := os.WriteFile(counter, []byte(strconv.Itoa(inner+outer-cmd.Process.Pid)), 0); err != nil {
			return 5
		}
	}
	fmt.Println("no twin in 1000 tries")
	return 6
}

// twinTry is an agent if its numbers are equal; else it tells the outer one.
func twinTry([]string) int {
	link, err := os.Readlink("/proc/self")
	if err != nil {
		return 8
	}
	if outer := filepath.Base(link); outer != strconv.Itoa(os.Getpid()) {
		fmt.Fprint(os.Stderr, outer)
		return 7
	}
	return agentRole(nil)
}
