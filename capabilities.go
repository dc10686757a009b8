package heirlock

import (
	"errors"
	"strings"
	"time"

	"github.com/heirlock/heirlock/internal/kernel"
)

// Capabilities is what the filesystem of one directory can do for locks.
type Capabilities struct {
	Filesystem string // type, "" where it is not known
	Scope      string // "local", "shared" or "unknown"; only on a local one can another boot id prove an owner gone
	// Birth is how a lock file gets its name whole: "unnamed" (O_TMPFILE and linkat), "rename" (a temporary name and an
	// exclusive rename), "link" (a temporary name and link), or "" if none works.
	Birth string
	Flock bool  // kernel locks are granted; without them nothing is ever reclaimed
	Cause error // why there is no birth, or no flock
}

// Examine finds out what the filesystem of a directory can do, by making, naming and removing one hidden file.
func Examine(dir string) (Capabilities, error) {
	d, err := kernel.OpenDir(dir)
	if err != nil {
		return Capabilities{}, err
	}
	defer d.Close()
	t := &target{path: strings.TrimSuffix(dir, "/") + "/", dir: d, me: measured()}
	var out Capabilities
	for {
		name := temporaryPrefix + newAcquisition(time.Now())
		h, n, err := t.bear(name)
		if err == nil {
			out.Filesystem, out.Scope = n.Filesystem.Name, string(n.Filesystem.Scope)
			out.Flock, out.Cause = n.Flock == nil, n.Flock
			err = t.proveBirth(&h, &n, &out)
		}
		if errors.Is(err, kernel.ErrNoUnnamed) && !t.temporaries {
			t.temporaries = true
			continue
		}
		return out, inDir(t, err)
	}
}

func (t *target) proveBirth(h *held, n *kernel.Newborn, out *Capabilities) error {
	ours, err := n.Publish(h.name)
	if !ours {
		n.Discard()
		if err != nil && !errors.Is(err, kernel.ErrNoUnnamed) {
			out.Cause = inDir(t, err)
			return nil
		}
		return err
	}
	out.Birth = string(n.Route)
	defer h.file.Close()
	return t.remove(h)
}
