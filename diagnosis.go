package heirlock

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/heirlock/heirlock/process"
)

// Diagnosis is what is known about the owner of one lock, with the evidence. It is a snapshot: only an owner that is
// gone stays as it was seen.
type Diagnosis struct {
	Path string
	// ID is how an operator names exactly this lock to [Reclaim]: the acquisition of its owner, else "sha256:" and 16
	// hexadecimal digits of the file's bytes; "" if there are no bytes to read.
	ID string
	// State is "free", "held" (the owner is alive, or the witness is held), "stale" (the owner is provably gone),
	// "unproven" (neither is known) or "ownerless" (no program of this format wrote the file).
	State string
	// Attribution is whether the record is about this machine: "this-machine", "another-machine" or "unattributable".
	Attribution string
	Liveness    process.Liveness
	Identity    process.Identity // "" when nothing was asked
	// Witness is the kernel lock on the owner's own inode: "held", "released", or "unknown", which proves nothing.
	// [Inspect] asks for it; a refused attempt knows it only if it came as far as removing the lock.
	Witness    string
	Filesystem struct {
		Type  string // "" where it is not known
		Scope string // "local", "shared" or "unknown"
	}
	Owner         *Record    // nil where the file names no valid owner
	ReclaimableBy []Policy   // the policies that would take the lock on this evidence
	Cause         string     // why the verdict is not more certain; "" where there is nothing to say
	Guard         *Diagnosis // of <path>.reclaim, if that file exists

	facts   *facts // what Explanation names
	guarded string // of a guard: the lock that it is about
}

// diagnosisJSON is the wire form, in the order it is printed.
type diagnosisJSON struct {
	Path          string         `json:"path"`
	ID            *string        `json:"id"`
	State         string         `json:"state"`
	Attribution   string         `json:"attribution"`
	Liveness      string         `json:"liveness"`
	Identity      *string        `json:"identity"`
	Witness       string         `json:"witness"`
	Filesystem    filesystemJSON `json:"filesystem"`
	Owner         *Record        `json:"owner"`
	ReclaimableBy []Policy       `json:"reclaimableBy"`
	Cause         *string        `json:"cause"`
	Explanation   []string       `json:"explanation"`
}

type filesystemJSON struct {
	Type  string `json:"type"`
	Scope string `json:"scope"`
}

// MarshalJSON writes the object that docs/exit-codes-and-json.md describes. The guard's object has no
// guard of its own.
func (d Diagnosis) MarshalJSON() ([]byte, error) {
	type guarded struct {
		diagnosisJSON
		Guard *diagnosisJSON `json:"guard"`
	}
	out := guarded{diagnosisJSON: d.wire()}
	if d.Guard != nil {
		guard := d.Guard.wire()
		out.Guard = &guard
	}
	return json.Marshal(out, jsontext.AllowInvalidUTF8(true)) // a path may be any bytes
}

func (d *Diagnosis) wire() diagnosisJSON {
	by := d.ReclaimableBy
	if by == nil {
		by = []Policy{}
	}
	return diagnosisJSON{
		Path: d.Path, ID: orNull(d.ID), State: d.State, Attribution: d.Attribution, Liveness: string(d.Liveness),
		Identity: orNull(string(d.Identity)), Witness: d.Witness, Filesystem: filesystemJSON(d.Filesystem),
		Owner: d.Owner, ReclaimableBy: by, Cause: orNull(d.Cause), Explanation: d.Explanation(),
	}
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
