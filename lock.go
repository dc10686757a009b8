package heirlock

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/heirlock/heirlock/internal/kernel"
)

// Policy says what an attempt may do with a lock that is not free.
type Policy string

// The policies. None of them ever takes a lock whose owner is not proven gone.
const (
	// Refuse leaves a lock that exists alone, whoever owns it.
	Refuse Policy = "refuse"
	// ReclaimStale takes a lock whose owner's process instance is provably gone.
	ReclaimStale Policy = "reclaim-stale"
	// ReclaimReleased also takes, within one boot and on a local filesystem, a lock whose owner lived in another PID or
	// time namespace, if the kernel says that nobody holds the flock(2) of its file any more. It is for a container
	// that restarts on the same node with the same volume.
	ReclaimReleased Policy = "reclaim-released"
)

// Options are the options of all calls; the zero value is the default of each field.
type Options struct {
	Policy Policy // "" means Refuse for TryAcquire and ReclaimStale for Acquire
	// Mode is the file's mode, exactly, whatever the umask; 0 means 0600. It must let the owner read.
	Mode fs.FileMode
	// Label is recorded and shown to whoever is refused; at most 1024 bytes of UTF-8.
	Label string
	// MachineID names this machine instead of the detected id. It must name one running kernel, never a cluster: an
	// equal declared id is believed where a detected one is not. At most 256 bytes; "" means detect.
	MachineID string
	// Durable syncs the file before it has its name, and the directory after the name came or went.
	Durable bool
	// OwnerlessGrace lets Acquire remove a file that no program of this format wrote, after Acquire itself has seen it
	// unchanged for so long; zero skips the wait, not the second look. nil, the default, never removes one.
	// TryAcquire has no grace.
	OwnerlessGrace *time.Duration
	// HandOn says that a descriptor of the lock will be given to another program (Inheritable): the lock is then not
	// inherited while that program may still be at work, even if this process is gone.
	HandOn bool
	// Exec says that this process will become another program by execve(2), which closes the lock's own descriptor.
	Exec bool
}

func (o *Options) check() error {
	switch {
	case o.Policy != "" && o.Policy != Refuse && o.Policy != ReclaimStale && o.Policy != ReclaimReleased:
		return fmt.Errorf("unknown policy %q: %w", o.Policy, syscall.EINVAL)
	case o.Mode&^0o777 != 0 || o.Mode != 0 && o.Mode&0o400 == 0:
		return fmt.Errorf("mode %#o is not a mode that lets the owner read: %w", uint32(o.Mode), syscall.EINVAL)
	case len(o.Label) > 1024 || !utf8.ValidString(o.Label):
		return fmt.Errorf("the label is not UTF-8 of at most 1024 bytes: %w", syscall.EINVAL)
	case len(o.MachineID) > 256 || !utf8.ValidString(o.MachineID):
		return fmt.Errorf("the machine id is not UTF-8 of at most 256 bytes: %w", syscall.EINVAL)
	case o.OwnerlessGrace != nil && *o.OwnerlessGrace < 0:
		return fmt.Errorf("a negative ownerless grace: %w", syscall.EINVAL)
	}
	return nil
}

// Lock is a held lock. It stays held until Release, or until this process ends: forgetting the Lock does not release it.
type Lock struct {
	Path      string     // as the caller gave it
	Owner     Record     // what the lock file says about this process
	Reclaimed *Diagnosis // the evidence on which a dead owner's lock was inherited; nil if the name was free

	// Polled says why a wait for this lock had to look by itself instead of being woken; nil if it did not.
	Polled error

	mu    sync.Mutex
	t     *target
	file  held
	since time.Time
	over  bool          // released, or lost and given up
	err   error         // of the release
	lost  chan struct{} // nil until somebody asked
	vigil *vigil        // nil until somebody asked
}

// held is a file of ours that has its name: the lock, or its guard.
type held struct {
	file kernel.File
	stat kernel.Stat
	name string
	rec  Record
}

// TryAcquire takes the lock at a path, or refuses at once. It makes one attempt; that attempt may inherit the lock
// of a provably dead owner if the policy says so, and then waits up to 100 ms for a kernel lock that another
// process holds for an instant.
//
// A refusal is a *HeldError (ErrHeld, fs.ErrExist) and leaves nothing behind, as does every other error: of the file or
// directory that could not be used, with the system's errno in its chain.
//
// The path's parent is resolved now, links followed, and held open; the last component is never followed.
func TryAcquire(path string, opts Options) (*Lock, error) {
	if opts.Policy == "" {
		opts.Policy = Refuse
	}
	t, err := resolve(path, opts)
	if err != nil {
		return nil, err
	}
	l, err := t.attempt(nil)
	if err != nil {
		t.close()
		return nil, err
	}
	return l, nil
}

// remove takes a name of ours away, if it still leads to our file, while we hold the file's flock. ErrLost if it does
// not. With errNotDurable the name is gone, but may come back with a power cut.
//
//	fstatat, unlinkat, [fsync of the directory]
func (t *target) remove(h *held) error {
	at, err := t.dir.Stat(h.name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !at.SameFile(h.stat) {
		return ErrLost
	}
	if err != nil {
		return inDir(t, err)
	}
	if err := t.dir.Unlink(h.name); errors.Is(err, fs.ErrNotExist) {
		return ErrLost
	} else if err != nil {
		return inDir(t, err)
	}
	if !t.opts.Durable {
		return nil
	}
	if err := t.dir.Sync(); err != nil {
		return fmt.Errorf("%w: %w", errNotDurable, err)
	}
	return nil
}

var errNotDurable = errors.New("the lock was released, but its directory could not be synced")

// Release gives the lock back: it removes the file, if the name still leads to it, and only then closes it. It may be
// called again. ErrLost says that the file was taken away before; nothing is removed then, and the lock is given up. A
// directory that cannot be synced (Durable) is an error too, and the lock is given up. Any other error leaves the lock
// held, so that Release can be tried again.
func (l *Lock) Release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return l.err
	}
	err := l.t.remove(&l.file)
	if err != nil && !errors.Is(err, ErrLost) && !errors.Is(err, errNotDurable) {
		return err
	}
	l.file.file.Close()
	if l.Reclaimed != nil {
		l.t.sweep()
	}
	l.over, l.err = true, err
	theCrowd.released(l.Path, time.Since(l.since))
	if l.vigil != nil {
		l.vigil.end()
	}
	if l.vigil == nil || l.vigil.own {
		l.t.close()
	}
	return err
}

// Inheritable returns a descriptor of the lock file, numbered min or above, that child processes and the successor of
// execve(2) inherit; while one of them has it open, the kernel lock of the file stays held. The lock must have been
// taken with Options.HandOn. The caller closes it with syscall.Close after the child was started.
func (l *Lock) Inheritable(min int) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over || !l.t.opts.HandOn {
		return -1, fmt.Errorf("the lock is not held, or was not taken with HandOn: %w", syscall.EINVAL)
	}
	return l.file.file.Inheritable(min)
}
