package heirlock

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/heirlock/heirlock/internal/kernel"
	"github.com/heirlock/heirlock/process"
)

const (
	guardSuffix     = ".reclaim"
	temporaryPrefix = ".heirlock-"
	probeSuffix     = kernel.ProbeSuffix
	uuidLength      = 36
	nameMax         = 255 // where the filesystem does not name its own bound
)

// identity is what a process says about itself in a record. It is measured once, not at every acquire.
type identity struct {
	own             process.Observation
	ownErr          error
	host            string
	machine, source string
}

// measured returns what was measured once for all, unless something failed: then it tries again. A thousand waiters share
// it, and none of them needs a larger stack for it.
func measured() *identity {
	if last := lastMeasured.Load(); last != nil && last.ownErr == nil && last.machine != "" {
		return last
	}
	return measure()
}

func measure() *identity {
	me := identity{host: hostname()}
	me.own, me.ownErr = process.Self()
	if id, source, err := process.Machine(); err == nil {
		me.machine, me.source = id, source
	}
	if last := lastMeasured.Load(); last != nil && last.ownErr == nil && me.ownErr == nil && *last == me {
		return last
	}
	lastMeasured.Store(&me)
	return &me
}

var lastMeasured atomic.Pointer[identity]

var hostname = sync.OnceValue(func() string {
	if host, err := os.Hostname(); err == nil && host != "" {
		return strings.ToValidUTF8(host, "?")
	}
	return "unknown"
})

// target is one lock path, resolved once: its parent is an open directory, and every later name is relative to it.
type target struct {
	path string // as the caller gave it
	name string
	dir  kernel.Dir
	me   *identity
	opts Options

	temporaries bool              // unnamed files are not to be had here
	waiting     bool              // this is a waiting call
	early       map[string]*early // the files it made before their names are free
	nameless    []kernel.File     // of files it removed
	read        *lastRead         // most looks of a wait see the same again
}

// lastRead is the last record that a waiting call read, and what it says.
type lastRead struct {
	data []byte
	reading
}

// resolve opens the parent of a path. It creates nothing.
func resolve(path string, opts Options) (*target, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	parent, name := splitPath(path)
	invalid := func(err error) error { return &fs.PathError{Op: "lock", Path: path, Err: err} }
	switch {
	case path == "":
		return nil, invalid(fmt.Errorf("empty path: %w", syscall.EINVAL))
	case name == "" || name == "." || name == "..":
		return nil, invalid(fmt.Errorf("the path names a directory: %w", syscall.EINVAL))
	case ofTemporary(name) != "":
		return nil, invalid(fmt.Errorf("the name is that of a temporary: %w", syscall.EINVAL))
	case strings.IndexByte(path, 0) >= 0:
		return nil, invalid(syscall.EINVAL)
	case len(name)+len(guardSuffix) > nameMax:
		return nil, invalid(syscall.ENAMETOOLONG)
	}
	dir, err := kernel.OpenDir(parent)
	if err != nil {
		return nil, err
	}
	t := &target{path: path, name: name, dir: dir, me: measured(), opts: opts}
	if opts.MachineID != "" {
		declared := *t.me
		declared.machine, declared.source = opts.MachineID, "declared"
		t.me = &declared
	}
	return t, nil
}

// splitPath parts a path at its last separator and leaves the rest alone: "a/.." is not "." where a is a link.
func splitPath(path string) (parent, name string) {
	for i := len(path) - 1; i >= 0; i-- {
		if os.IsPathSeparator(path[i]) {
			return path[:i+1], path[i+1:]
		}
	}
	return ".", path
}

func (t *target) close() { t.dir.Close() }

func (t *target) guardName() string { return t.name + guardSuffix }

// pathOf is how a name beside the lock is called in messages.
func (t *target) pathOf(name string) string { return strings.TrimSuffix(t.path, t.name) + name }

// diagnose judges what an earlier look saw at a name. With probe it asks the witness by a shared flock that it gives
// back at once (inspect); without, it does not ask. kernel.ErrChanging: look again. The Stat is that of the open file,
// for a later destroy.
func (t *target) diagnose(name string, seen kernel.Stat, probe bool) (Diagnosis, kernel.Stat, error) {
	f, before, err := t.dir.Open(name, seen, false)
	if errors.Is(err, kernel.ErrChanging) || errors.Is(err, fs.ErrNotExist) {
		return Diagnosis{}, kernel.Stat{}, kernel.ErrChanging
	}
	if kernel.Transient(err) {
		return Diagnosis{}, seen, inDir(t, err) // about this process or its disk, not about the lock
	}
	if err != nil {
		return judge(t.pathOf(name), reading{blocked: blockedBy(err)}, facts{}), seen, nil
	}
	defer f.Close()
	state := flockNotAsked
	if probe {
		state = flockAnswer(f.Lock(false))
	}
	d, err := t.judgeOpen(name, f, before, state)
	return d, before, err
}

// judgeOpen reads the open file, gathers the facts that its verdict needs, and judges. kernel.ErrChanging: somebody
// wrote to it meanwhile.
func (t *target) judgeOpen(name string, f kernel.File, before kernel.Stat, state flockState) (Diagnosis, error) {
	var r reading
	data, err := f.ReadWhole(before, maxRecord)
	if errors.Is(err, kernel.ErrChanging) {
		return Diagnosis{}, err
	}
	if err != nil {
		r.blocked = blockedBy(err)
	} else if t.read != nil && bytes.Equal(data, t.read.data) {
		r = t.read.reading
	} else {
		r.record, r.content, r.reason = parseRecord(data)
		if r.id = r.record.Evidence.Acquisition; r.id == "" {
			r.id = contentID(data)
		}
		if t.waiting {
			t.read = &lastRead{data, r}
		}
	}
	return judge(t.pathOf(name), r, t.gather(&r, f, before, state)), nil
}

// gather asks the kernel, once, for everything that the verdict on this record may rest on.
func (t *target) gather(r *reading, f kernel.File, st kernel.Stat, state flockState) facts {
	out := facts{
		own: t.me.own, ownErr: t.me.ownErr, host: t.me.host, machine: t.me.machine, source: t.me.source,
		at: st, dev: utoa(st.Dev), ino: utoa(st.Ino), flock: state,
	}
	out.fs, _ = f.Filesystem() // unknown proves nothing
	if r.content == validOwner && wantsProbe(&r.record, &out) {
		seen, err := process.Observe(int(r.record.PID))
		out.seen, out.seenErr = &seen, err
	}
	return out
}

func flockAnswer(err error) flockState {
	switch {
	case err == nil:
		return flockFree
	case errors.Is(err, kernel.ErrLocked):
		return flockTaken
	}
	return flockAbsent
}

// blockedBy says why nothing could be read from what lies at a name.
func blockedBy(err error) string {
	var kind *kernel.NotRegularError
	switch {
	case errors.As(err, &kind):
		return err.Error()
	case errors.Is(err, kernel.ErrTooLarge):
		return fmt.Sprintf("the file is larger than a record can be (%d bytes)", maxRecord)
	}
	return "the file could not be read: " + err.Error()
}

// inDir completes the path of an error about a name in the parent directory.
func inDir(t *target, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		name := p.Path
		if name == "" {
			name = t.name
		}
		return &fs.PathError{Op: p.Op, Path: t.pathOf(name), Err: p.Err}
	}
	return err
}

func utoa(n uint64) string { return strconv.FormatUint(n, 10) }
