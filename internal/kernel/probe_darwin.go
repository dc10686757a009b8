package kernel

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// darwinNamespace stands where Linux has its namespaces: macOS has one process table.
const darwinNamespace = "darwin"

// libSystem holds the two calls that x/sys does not wrap, loaded without cgo. proc_pid_rusage(pid, flavor, buffer)
// is libproc.h's; gethostuuid(id, timeout) is gethostuuid(2).
var libSystem = sync.OnceValues(func() (calls struct {
	procPidRusage func(pid int32, flavor int32, buffer unsafe.Pointer) int32
	getHostUUID   func(id unsafe.Pointer, timeout unsafe.Pointer) int32
}, err error) {
	lib, err := purego.Dlopen("/usr/lib/libSystem.B.dylib", purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return calls, err
	}
	for name, call := range map[string]any{"proc_pid_rusage": &calls.procPidRusage, "gethostuuid": &calls.getHostUUID} {
		symbol, err := purego.Dlsym(lib, name)
		if err != nil {
			return calls, err
		}
		purego.RegisterFunc(call, symbol)
	}
	return calls, nil
})

// startAbstime is rusage_info_v0.ri_proc_start_abstime, mach time units since boot, as decimal text.
func startAbstime(pid int) (string, error) {
	calls, err := libSystem()
	if err != nil {
		return "", err
	}
	var usage rusageInfoV0
	if calls.procPidRusage(int32(pid), 0, unsafe.Pointer(&usage)) != 0 {
		return "", fmt.Errorf("proc_pid_rusage of process %d failed", pid)
	}
	return usage.start()
}

// Self measures the calling process.
func Self() Observation {
	pid := os.Getpid()
	var ids [2]string
	for i := range ids {
		text, err := unix.Sysctl("kern.bootsessionuuid")
		if err == nil {
			ids[i], err = parseBootID([]byte(text))
		}
		if err != nil {
			return Observation{Presence: Running, Cause: fmt.Errorf("kern.bootsessionuuid: %w", err)}
		}
	}
	start, err := startAbstime(pid)
	if err == nil && ids[0] != ids[1] {
		err = fmt.Errorf("kern.bootsessionuuid changes from one read to the next")
	}
	if err != nil {
		return Observation{Presence: Running, Cause: err}
	}
	return Observation{Presence: Running, Instance: Instance{
		PID: pid, Platform: "darwin", BootID: ids[0], Namespace: darwinNamespace, StartID: start,
	}}
}

// Probe observes what runs under a process number: kill(pid, 0), its state twice and its start twice.
func Probe(pid int) Observation {
	if err := unix.Kill(pid, 0); err == unix.ESRCH {
		return Observation{Presence: Absent}
	} else if err != nil && err != unix.EPERM {
		return Observation{Presence: Unknown, Cause: os.NewSyscallError("kill", err)}
	}
	return judgeDarwin(pid, lookDarwin(pid), lookDarwin(pid))
}

// lookDarwin takes the plain facts that judgeDarwin draws its conclusion from.
func lookDarwin(pid int) (look darwinLook) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		look.err = os.NewSyscallError("sysctl kern.proc.pid", err)
		return look
	}
	look.pid, look.state = int(info.Proc.P_pid), info.Proc.P_stat
	if look.state != stateZombie {
		look.start, look.err = startAbstime(pid)
	}
	return look
}

// Namespaces: there is one.
func Namespaces(int) (string, error) { return darwinNamespace, nil }

// MachineID returns the platform UUID.
func MachineID() (id, source string, err error) {
	calls, err := libSystem()
	if err != nil {
		return "", "", err
	}
	var uuid [16]byte
	var wait unix.Timespec
	if calls.getHostUUID(unsafe.Pointer(&uuid), unsafe.Pointer(&wait)) != 0 {
		return "", "", fmt.Errorf("gethostuuid failed")
	}
	id, err = parseMachineID([]byte(strings.ToLower(hex.EncodeToString(uuid[:]))))
	return id, "platform-uuid", err
}
