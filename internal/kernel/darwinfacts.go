package kernel

import (
	"fmt"
	"strconv"
)

// rusageInfoV0 is struct rusage_info_v0 of sys/resource.h of macOS.
type rusageInfoV0 struct {
	UUID          [16]byte
	UserTime      uint64
	SystemTime    uint64
	PkgIdleWkups  uint64
	InterruptWkup uint64
	Pageins       uint64
	WiredSize     uint64
	ResidentSize  uint64
	PhysFootprint uint64
	StartAbstime  uint64
	ExitAbstime   uint64
}

// start is the start of the process as a record names it. The kernel never leaves it zero.
func (u *rusageInfoV0) start() (string, error) {
	if u.StartAbstime == 0 {
		return "", fmt.Errorf("the kernel names no start of the process")
	}
	return strconv.FormatUint(u.StartAbstime, 10), nil
}

// stateZombie is SZOMB of sys/proc.h of macOS: every thread is gone and the parent has not waited yet.
const stateZombie = 5

// darwinLook is what one look at a process number of macOS saw.
type darwinLook struct {
	pid   int
	state int8
	start string
	err   error
}

// judgeDarwin draws the conclusion from two looks at a number that kill(2) did not call absent.
func judgeDarwin(pid int, first, second darwinLook) Observation {
	switch {
	case first.err != nil && second.err != nil:
		return Observation{Presence: Running, Cause: second.err}
	case first.err != nil || second.err != nil || first != second:
		return Observation{Presence: Unknown, Cause: errExchanged}
	case second.pid != pid:
		return Observation{Presence: Running, Cause: fmt.Errorf("kern.proc.pid answered about process %d, not %d", second.pid, pid)}
	case second.state == stateZombie:
		return Observation{Presence: Exited}
	}
	return Observation{Presence: Running, Instance: Instance{PID: pid, Platform: "darwin", StartID: second.start}}
}
