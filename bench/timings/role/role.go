// Package role lets the command start itself again, as a process that takes part in a measurement.
package role

import (
	"os"
	"os/exec"
)

const variable = "TIMINGS_ROLE"

// Current is the role this process was started in, or "".
func Current() string { return os.Getenv(variable) }

// Command is this command in a role. Wrapped is what runs it, if anything, with its arguments.
func Command(role string, args []string, wrapped ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	argv := append(append(wrapped, self), args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), variable+"="+role)
	cmd.Stderr = os.Stderr
	return cmd, nil
}
