// Package process names process instances and observes them.
//
// Most programs want two calls: [Self] for what to record about themselves, and [Observe] with [Compare] to ask whether
// a recorded instance still runs. A process number alone answers neither question: it names a slot in the process
// table, and the slot is used again.
//
// Not promised: that a process that runs now still runs when the caller acts on it; anything about a process of
// another PID or time namespace or of another machine; anything on platforms other than Linux and macOS, where
// both functions return [errors.ErrUnsupported]. The macOS half has not been run on hardware yet.
package process

import (
	"fmt"
	"math"
	"sync"

	"github.com/heirlock/heirlock/internal/kernel"
)

// Instance is one lifetime of one process. It is comparable; the zero value is invalid and equals no measured one.
type Instance struct {
	PID       int    // process number in Namespace, 1 or above
	Platform  string // "linux" or "darwin"
	BootID    string // /proc/sys/kernel/random/boot_id; kern.bootsessionuuid
	Namespace string // link texts of /proc/self/ns/pid and /proc/self/ns/time, joined by ";"; a constant on macOS
	StartID   string // decimal: field 22 of /proc/<pid>/stat, in clock ticks since boot; ri_proc_start_abstime on macOS
}

// Valid reports whether every field was measured.
func (i Instance) Valid() bool {
	return i.PID > 0 && i.Platform != "" && i.BootID != "" && i.Namespace != "" && i.StartID != ""
}

// String is for messages; its form is not promised.
func (i Instance) String() string {
	if !i.Valid() {
		return "no instance"
	}
	return fmt.Sprintf("pid %d (%s, started %s, boot %s, %s)", i.PID, i.Platform, i.StartID, i.BootID, i.Namespace)
}

// Presence is what the kernel says about a process number.
type Presence string

// The presences of a process number. Only Absent and Exited say that no process runs under it: Absent is a number that
// no process has (a thread's number is one), Exited a process all of whose threads have ended and whose parent has not
// waited for it. Unknown is a value of its own and proves nothing.
const (
	Unknown = Presence(kernel.Unknown)
	Running = Presence(kernel.Running)
	Exited  = Presence(kernel.Exited)
	Absent  = Presence(kernel.Absent)
)

// Observation is what was seen of one process number, from the caller's PID namespace.
type Observation struct {
	Presence Presence
	Instance Instance // as seen from here; zero unless the process runs and everything about it could be measured
	PidfdID  string   // decimal inode number of its pidfd, unique for the boot (Linux 6.9, 64-bit); "" where unknown
}

// Self returns the instance of the calling process, measured once and kept; only what failed for want of descriptors or
// memory is measured again. The error says what could not be measured; it wraps [errors.ErrUnsupported] on a platform
// without evidence. The Observation is then without an Instance.
func Self() (Observation, error) {
	return self.get(func() (Observation, error) {
		o := kernel.Self()
		return Observation{Presence: Presence(o.Presence), Instance: Instance(o.Instance), PidfdID: o.PidfdID}, o.Cause
	})
}

var self kept[Observation]

// kept is a measurement that is made once, unless something transient stood in its way.
type kept[T any] struct {
	mu    sync.Mutex
	made  bool
	value T
	err   error
}

func (k *kept[T]) get(measure func() (T, error)) (T, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.made {
		k.value, k.err = measure()
		k.made = !kernel.Transient(k.err)
	}
	return k.value, k.err
}

// Observe looks at a process number of the caller's PID namespace. It sends no signal (kill(2) with signal 0 where
// there is no pidfd) and waits for nothing. A non-nil error says why the presence is Unknown, or, beside Running, why
// the instance could not be measured; the Observation is valid in both cases.
func Observe(pid int) (Observation, error) {
	if pid < 1 || pid > math.MaxInt32 {
		return Observation{Presence: Unknown}, fmt.Errorf("no process number: %d", pid)
	}
	o := kernel.Probe(pid)
	out := Observation{Presence: Presence(o.Presence), PidfdID: o.PidfdID}
	if o.Instance == (kernel.Instance{}) {
		return out, o.Cause
	}
	own, err := Self()
	if err != nil {
		return out, fmt.Errorf("the observer cannot measure itself: %w", err)
	}
	out.Instance = Instance(o.Instance)
	out.Instance.BootID, out.Instance.Namespace = own.Instance.BootID, own.Instance.Namespace
	return out, nil
}

// Namespaces returns the PID and time namespaces that a process is in, as [Instance] names them. The caller needs the
// right to trace that process (ptrace(2)).
func Namespaces(pid int) (string, error) { return kernel.Namespaces(pid) }

// Machine returns the id of the installation and where it was read: "machine-id" (machine-id(5)) or "platform-uuid"
// (gethostuuid(2)). Ids are cloned with disk images: an equal id alone proves nothing.
func Machine() (id, source string, err error) {
	m, err := machine.get(func() (m machineID, err error) {
		m.id, m.source, err = kernel.MachineID()
		return m, err
	})
	return m.id, m.source, err
}

var machine kept[machineID]

type machineID struct{ id, source string }
