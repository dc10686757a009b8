//go:build !linux && !darwin

package kernel

import (
	"errors"
	"fmt"
	"runtime"
)

var errNoEvidence = fmt.Errorf("%s has no evidence of process instances: %w", runtime.GOOS, errors.ErrUnsupported)

// Self cannot measure anything here.
func Self() Observation { return Observation{Presence: Running, Cause: errNoEvidence} }

// Probe cannot observe anything here.
func Probe(int) Observation { return Observation{Presence: Unknown, Cause: errNoEvidence} }

// Namespaces cannot be observed here.
func Namespaces(int) (string, error) { return "", errNoEvidence }

// MachineID: no source of one is trusted here.
func MachineID() (id, source string, err error) { return "", "", errNoEvidence }
