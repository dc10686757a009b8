// Package kernel is the edge of heirlock: every fact that comes from an operating system and every change
// that goes to one passes through it, and it is the only directory with build tags.
//
// It decides nothing. A function here reports what one system call, or one documented sequence of them,
// observed; an answer that is not certain is an error, never a default. The pure code above
// (record, verdict) turns facts into decisions.
//
// The portable declarations and their documentation are in the files without a suffix; *_linux.go,
// *_darwin.go, *_posix.go and *_windows.go implement them, and *_other.go fails with
// errors.ErrUnsupported.
package kernel

import (
	"errors"
	"fmt"
)

// Kind is what lies at a name, as lstat(2) tells it.
type Kind string

// The kinds of a file.
const (
	Regular   Kind = "regular file"
	Directory Kind = "directory"
	Symlink   Kind = "symlink"
	FIFO      Kind = "fifo"
	Socket    Kind = "socket"
	Device    Kind = "device"
)

// Stat is the part of struct stat that heirlock compares. Times are nanoseconds since the epoch and only
// ever compared for equality: no clock decides anything here.
type Stat struct {
	Dev, Ino     uint64
	Nlink        uint64
	Size         int64
	Mtime, Ctime int64
	Mode         uint32 // permission bits only, 0…0777
	Kind         Kind
}

// SameFile reports whether both describe one inode. It is meaningful only while at least one of the two is
// held open: a freed inode number is handed to the next file at once on ext4.
func (s Stat) SameFile(o Stat) bool { return s.Dev == o.Dev && s.Ino == o.Ino && s.Ino != 0 }

// Unchanged reports whether nothing about the file was seen to change between the two observations. A link
// made or removed beside it changes ctime too, and counts.
func (s Stat) Unchanged(o Stat) bool { return s == o }

// Errors of this package, beside those of the system calls.
var (
	// ErrLocked: another open file description holds a conflicting flock(2).
	ErrLocked = errors.New("locked by another open file description")
	// ErrNoLock: this filesystem, or this platform, does not grant flock(2).
	ErrNoLock = errors.New("no file lock is to be had here")
	// ErrChanging: the file changed while it was read.
	ErrChanging = errors.New("the file changed while it was read")
	// ErrTooLarge: the file is larger than the reader's limit.
	ErrTooLarge = errors.New("the file is larger than a record can be")
	// ErrLeased: another process holds a lease on the file, fcntl(2) F_SETLEASE.
	ErrLeased = errors.New("another process holds a lease on the file")
	// ErrNameGone: the temporary name of an unpublished file was removed by somebody else.
	ErrNameGone = errors.New("the temporary name was removed")
	// ErrNoUnnamed: this filesystem, or this process, cannot give a name to an unnamed file.
	ErrNoUnnamed = errors.New("unnamed files are not to be had here")

	errExchanged = errors.New("the process changed while it was observed")
)

// NotRegularError says that a name is not a regular file, and what it is instead. Such a name is never opened.
type NotRegularError struct{ Kind Kind }

func (e *NotRegularError) Error() string { return fmt.Sprintf("not a regular file but a %s", e.Kind) }

// Presence is what the kernel says about a process number.
type Presence string

// The presences of a process number. Only Absent and Exited say that nobody runs under it.
const (
	Unknown Presence = "unknown"
	Running Presence = "running"
	Exited  Presence = "exited"
	Absent  Presence = "absent"
)

// Route is how a file got its name.
type Route string

// The routes, in the order they are tried.
const (
	RouteUnnamed Route = "unnamed" // O_TMPFILE, then linkat
	RouteRename  Route = "rename"  // a temporary name, then a rename that replaces nothing
	RouteLink    Route = "link"    // a temporary name, then link and unlink
)

// ProbeSuffix makes a second name of a temporary, for an instant. What a crash leaves of it, a sweep finds like the first.
const ProbeSuffix = "-2"

// Instance is one lifetime of one process; see package process, which documents it.
type Instance struct {
	PID       int
	Platform  string
	BootID    string
	Namespace string
	StartID   string
}

// Observation is what one probe of one process number saw. Cause is nil only if Instance was measured whole or
// nobody runs there.
type Observation struct {
	Presence Presence
	Instance Instance
	PidfdID  string // inode number of its pidfd on pidfs, "" where there is none
	Cause    error
}
