package heirlock

import (
	"fmt"

	"github.com/heirlock/heirlock/internal/kernel"
	"github.com/heirlock/heirlock/process"
)

// This file is the verdict: a pure function of what a lock file holds and of facts that were gathered before. It asks
// nothing and changes nothing, so that it can be tested as a truth table.

// reading is what lies at the name of a lock.
type reading struct {
	free    bool
	blocked string  // why nothing could be read, "" if it could; such a file is never ownerless
	content content // of the bytes, if they could be read
	reason  string  // why they name no valid owner
	record  Record
	id      string // how an operator names it, "" if there are no bytes
}

// flockState is what flock(2) on the contender's own descriptor answered.
type flockState string

const (
	flockNotAsked flockState = ""
	flockFree     flockState = "free"   // it was granted to us
	flockTaken    flockState = "taken"  // somebody else has it
	flockShared   flockState = "shared" // somebody else has a shared one, which no owner has
	flockAbsent   flockState = "absent" // this filesystem has none, or it failed
)

// facts is everything else that a verdict rests on.
type facts struct {
	own      process.Observation // of this process
	ownErr   error               // why it could not be measured
	host     string
	machine  string // "" if there is none
	source   string // of machine: "declared", …
	fs       kernel.Filesystem
	at       kernel.Stat
	dev, ino string // of the contender's own descriptor, as a record names them
	flock    flockState
	seen     *process.Observation // at the recorded number; nil if nobody asked
	seenErr  error
}

// The attributions of a record.
const (
	thisMachine    = "this-machine"
	anotherMachine = "another-machine"
	unattributable = "unattributable"
)

// The values of Diagnosis.Witness.
const (
	witnessHeld     = "held"
	witnessReleased = "released"
	witnessUnknown  = "unknown"
)

// The values of Diagnosis.State.
const (
	stateFree      = "free"
	stateHeld      = "held"
	stateStale     = "stale"
	stateUnproven  = "unproven"
	stateOwnerless = "ownerless"
)

// initialPIDNamespace is the link text of the first PID namespace of every Linux kernel (PROC_PID_INIT_INO).
const initialPIDNamespace = "pid:[4026531836]"

// judge is the verdict.
func judge(path string, r reading, f facts) Diagnosis {
	d := Diagnosis{Path: path, ID: r.id, Attribution: unattributable, Liveness: process.NotProbed, Witness: witnessUnknown, facts: &f}
	d.Filesystem.Type, d.Filesystem.Scope = f.fs.Name, string(f.fs.Scope)
	switch {
	case r.free:
		d.State = stateFree
		return d
	case r.blocked != "":
		d.State, d.Cause = stateUnproven, r.blocked
		return d
	case r.content == ownerless:
		d.State, d.Cause = stateOwnerless, r.reason
		return d
	case r.content == unknownOwner:
		d.State, d.Cause = stateUnproven, r.reason
		return d
	}
	d.Owner = &r.record
	d.Attribution = attribute(&r.record, &f)
	d.Witness = witness(&r.record, &f)
	if d.Attribution == thisMachine {
		d.Identity, d.Cause = identify(&r.record, &f)
		d.Liveness = d.Identity.Liveness()
		if d.Identity == process.Legacy {
			d.Liveness, d.Cause = legacyLiveness(&r.record, &f)
		}
	} else {
		d.Cause = fmt.Sprintf("the record is not known to be about this machine (%s)", d.Attribution)
	}
	d.conclude(&f)
	return d
}

// attribute says whether the record is about this machine (rule 1).
func attribute(r *Record, f *facts) string {
	bothBoots := r.Process != nil && f.own.Instance.Valid()
	sameBoot := bothBoots && r.Process.BootID == f.own.Instance.BootID
	switch {
	case sameBoot:
		return thisMachine
	case r.Machine != "" && f.machine != "":
		if r.Machine == f.machine {
			return thisMachine
		}
		return anotherMachine
	case r.Host == f.host:
		return thisMachine
	}
	return unattributable
}

// witness says what flock(2) told about the owner: something only if this descriptor is the owner's own inode.
func witness(r *Record, f *facts) string {
	if !sameView(r, f) || r.Evidence.Witness == "" || !oneKernel(r, f) {
		return witnessUnknown
	}
	switch f.flock {
	case flockTaken:
		return witnessHeld
	case flockFree, flockShared:
		return witnessReleased
	}
	return witnessUnknown
}

// oneKernel: on a filesystem that others reach too, equal numbers can be another kernel's, and its flock may end there.
func oneKernel(r *Record, f *facts) bool {
	sameBoot := r.Process != nil && f.own.Instance.Valid() && r.Process.BootID == f.own.Instance.BootID
	return sameBoot || local(r, f)
}

// sameView reports whether the contender sees the inode that the owner locked: the same filesystem type, device and
// number. Overlay and its upper directory, or two mounts of a FUSE filesystem, do not agree on these.
func sameView(r *Record, f *facts) bool {
	file := r.Evidence.File
	return file.FS != "" && file.FS == f.fs.Type && file.Dev == f.dev && file.Ino == f.ino
}

// local reports whether both sides see a filesystem that only one kernel can reach. A record that names none counts by
// the contender's view.
func local(r *Record, f *facts) bool {
	if fs := r.Evidence.File.FS; fs != "" && kernel.KnownFilesystem(fs).Scope != kernel.ScopeLocal {
		return false
	}
	return f.fs.Scope == kernel.ScopeLocal
}

// identify compares the recorded instance with the evidence (rules 3 to 8).
func identify(r *Record, f *facts) (process.Identity, string) {
	switch {
	case r.Legacy:
		return process.Legacy, ""
	case r.Process == nil:
		return process.Unavailable, "the record's process instance is null or malformed"
	case f.ownErr != nil:
		return process.Unavailable, "this process could not measure itself: " + f.ownErr.Error()
	case !probeable(r.PID):
		return process.Unavailable, fmt.Sprintf("process number %d cannot be probed", r.PID)
	}
	seen := process.Observation{Presence: process.Unknown}
	if f.seen != nil {
		seen = *f.seen
	}
	id, reason := process.Compare(*r.Process, r.Evidence.PidfdID, f.own.Instance, seen, f.seenErr)
	if id == process.DifferentBoot {
		if reason := otherBootDoubt(r, f, seen); reason != "" {
			return process.Unavailable, reason
		}
	}
	return id, reason
}

// otherBootDoubt says why two different boot ids are no proof, "" if they are (rule 5).
func otherBootDoubt(r *Record, f *facts, seen process.Observation) string {
	declared := r.Machine != "" && r.Machine == f.machine && r.Evidence.MachineSource == "declared" && f.source == "declared"
	if !local(r, f) && !declared {
		return fmt.Sprintf("the boot ids differ (recorded %s, here %s), but the filesystem is not known to be local (%s), so the record may be of another machine",
			r.Process.BootID, f.own.Instance.BootID, f.fs.Name)
	}
	if r.Evidence.Acquisition != "" {
		return ""
	}
	own := f.own.Instance
	if r.Process.Namespace != own.Namespace {
		return fmt.Sprintf("the boot ids differ, but so do the namespaces (recorded %s, here %s): the boot id may be a container's", r.Process.Namespace, own.Namespace)
	}
	switch {
	case seen.Presence == process.Absent || seen.Presence == process.Exited:
		return ""
	case seen.Presence == process.Running && seen.Instance.StartID != "" && seen.Instance.StartID != r.Process.StartID:
		return ""
	}
	return fmt.Sprintf("the boot ids differ, but process %d may be the one recorded, under a container's boot id", r.PID)
}

// legacyLiveness judges a record of a generation that recorded no instance, by its bare number (rule 3).
func legacyLiveness(r *Record, f *facts) (process.Liveness, string) {
	if !probeable(r.PID) || f.seen == nil {
		return process.NotProbed, fmt.Sprintf("process number %d cannot be probed", r.PID)
	}
	gone := f.seen.Presence == process.Absent || f.seen.Presence == process.Exited
	switch {
	case !gone:
		return process.Alive, ""
	case f.ownErr != nil:
		return process.NotProbed, "this process could not measure itself: " + f.ownErr.Error()
	case !inInitialNamespace(f.own.Instance):
		return process.NotProbed, fmt.Sprintf("a legacy record does not say in which namespace process %d lives, and this is not the initial one (%s)", r.PID, f.own.Instance.Namespace)
	}
	return process.Gone, ""
}

func inInitialNamespace(i process.Instance) bool {
	return i.Platform == "darwin" || len(i.Namespace) >= len(initialPIDNamespace) && i.Namespace[:len(initialPIDNamespace)] == initialPIDNamespace
}

// probeable: the kernel's process numbers are 32-bit signed.
func probeable(pid int64) bool { return pid >= 1 && pid <= 1<<31-1 }

// wantsProbe says whether the verdict depends on what runs under the recorded number.
func wantsProbe(r *Record, f *facts) bool {
	if !probeable(r.PID) || attribute(r, f) != thisMachine {
		return false
	}
	if r.Legacy {
		return true
	}
	if r.Process == nil || f.ownErr != nil || r.Process.Namespace != f.own.Instance.Namespace {
		return false
	}
	return r.Process.BootID == f.own.Instance.BootID || r.Evidence.Acquisition == ""
}
