package heirlock

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

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

	mu   sync.Mutex
	t    *target
	file held
	over bool  // released, or lost and given up
	err  error // of the release
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
// A refusal is a *HeldError (ErrHeld, fs.ErrExist) and leaves nothing behind, as does every other error: an
// *fs.PathError of the file or directory that could not be used.
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

// create gives a new file of ours a name, if that is free: born complete, so that no file of ours is ever without its
// owner. ErrHeld: somebody else has the name.
//
//	Bear, pwrite, [fdatasync], linkat or renameat2, fstatat, [fsync of the directory]
func (t *target) create(name string) (held, error) {
	for range changingLooks {
		h, n, err := t.bear(name)
		if err == nil {
			var ours bool
			if ours, err = n.Publish(name); ours {
				return h, t.syncName(&h)
			}
			n.Discard()
			if err == nil {
				return held{}, ErrHeld
			}
		}
		switch {
		case errors.Is(err, kernel.ErrNoUnnamed) && !t.temporaries:
			t.temporaries = true
		case !errors.Is(err, kernel.ErrNameGone) && !errors.Is(err, kernel.ErrChanging):
			return held{}, inDir(t, err)
		}
	}
	return held{}, &fs.PathError{Op: "lock", Path: t.pathOf(name), Err: errors.New(causeChanging)}
}

// syncName makes a new name durable if the caller wants that; if that fails, the name goes again.
func (t *target) syncName(h *held) error {
	if !t.opts.Durable {
		return nil
	}
	err := t.dir.Sync()
	if err != nil {
		_ = t.remove(h)
		h.file.Close()
	}
	return err
}

// bear makes a file with our record that does not have its name yet.
func (t *target) bear(name string) (held, kernel.Newborn, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return held{}, kernel.Newborn{}, err
	}
	acquisition, temporary := id.String(), ""
	if t.temporaries {
		temporary = temporaryPrefix + acquisition
	}
	mode := uint32(0o600)
	if t.opts.Mode != 0 {
		mode = uint32(t.opts.Mode)
	}
	n, err := t.dir.Bear(temporary, mode)
	if err != nil {
		return held{}, n, err
	}
	h := held{file: n.File, stat: n.Stat, name: name, rec: t.record(acquisition, &n)}
	if err := t.fill(&n, &h.rec); err != nil {
		n.Discard()
		return held{}, n, err
	}
	return h, n, nil
}

// fill writes the record, after everything that could make the lock unusable later was ruled out.
func (t *target) fill(n *kernel.Newborn, rec *Record) error {
	content, err := appendRecord(make([]byte, 0, 768), rec)
	if err != nil {
		return err
	}
	longest := max(len(t.name)+len(guardSuffix), len(temporaryPrefix)+uuidLength+len("-2"))
	if most := n.Filesystem.NameMax; most > 0 && longest > most {
		return &fs.PathError{Op: "lock", Path: t.name, Err: syscall.ENAMETOOLONG}
	}
	if len(content) >= maxRecord {
		return fmt.Errorf("the record would be longer than %d bytes", maxRecord)
	}
	return n.Fill(append(content, '\n'), t.opts.Durable)
}

// acquiredLayout is RFC 3339 in UTC with milliseconds.
const acquiredLayout = "2006-01-02T15:04:05.000Z"

// record is what we say about ourselves in a file of ours.
func (t *target) record(acquisition string, n *kernel.Newborn) Record {
	at, dev, ino := threeTexts(time.Now(), n.Stat)
	rec := Record{PID: int64(syscall.Getpid()), Host: t.me.host, Machine: t.me.machine, AcquiredAt: at}
	if t.me.ownErr == nil {
		rec.Process = &t.me.own.Instance
	}
	e := &rec.Evidence
	e.Acquisition, e.Label, e.PidfdID = acquisition, t.opts.Label, t.me.own.PidfdID
	e.HandedOn = t.opts.HandOn
	if n.Flock == nil {
		e.Witness = t.opts.witness()
	}
	e.File.FS, e.File.Dev, e.File.Ino = n.Filesystem.Type, dev, ino
	if rec.Machine != "" {
		e.MachineSource = t.me.source
	}
	return rec
}

// threeTexts makes the texts of a record that differ at every acquire out of one allocation.
func threeTexts(now time.Time, st kernel.Stat) (at, dev, ino string) {
	var buf [80]byte
	b := now.UTC().AppendFormat(buf[:0], acquiredLayout)
	i := len(b)
	b = strconv.AppendUint(b, st.Dev, 10)
	j := len(b)
	all := string(strconv.AppendUint(b, st.Ino, 10))
	return all[:i], all[i:j], all[j:]
}

// witness is what the flock of the file will say about the owner: nothing, if the owner becomes a program that does
// not have it.
func (o *Options) witness() string {
	switch {
	case o.Exec && o.HandOn:
		return witnessChild
	case o.Exec:
		return ""
	case o.HandOn:
		return witnessFlockChild
	}
	return witnessFlock
}

// remove takes a name of ours away, if it still leads to our file, while we hold the file's flock. ErrLost if it does not.
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
	if t.opts.Durable {
		return t.dir.Sync()
	}
	return nil
}

// Release gives the lock back: it removes the file, if the name still leads to it, and only then closes it. It may be
// called again. ErrLost says that the file was taken away before; nothing is removed then, and the lock is given up.
// Any other error leaves the lock held, so that Release can be tried again.
func (l *Lock) Release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return l.err
	}
	err := l.t.remove(&l.file)
	if err != nil && !errors.Is(err, ErrLost) {
		return err
	}
	l.file.file.Close()
	l.t.close()
	l.over, l.err = true, err
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
