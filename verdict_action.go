package heirlock

import (
	"slices"

	"github.com/heirlock/heirlock/process"
)

// conclude derives the state, and the policies that would take the lock. Until flock was asked, the witness counts as
// released where the view is the same: destroy proves it before it removes anything.
func (d *Diagnosis) conclude(f *facts) {
	r := d.Owner
	w := d.Witness
	if f.flock == flockNotAsked && sameView(r, f) && oneKernel(r, f) && r.Evidence.Witness != "" {
		w = witnessReleased
	}
	gone := d.Liveness == process.Gone
	veto := w == witnessHeld || f.flock == flockTaken || f.flock == flockShared || f.flock == flockAbsent ||
		w == witnessUnknown && r.Evidence.handedOn() && d.Identity != process.DifferentBoot
	released := !veto && w == witnessReleased && d.witnessProves(f)
	switch {
	case d.Liveness == process.Alive || d.Witness == witnessHeld:
		d.State = stateHeld
	case gone && !veto:
		d.State = stateStale
	default:
		d.State = stateUnproven
	}
	switch {
	case gone && !veto:
		d.ReclaimableBy = []Policy{ReclaimStale, ReclaimReleased}
	case released && d.State == stateUnproven:
		d.ReclaimableBy = []Policy{ReclaimReleased}
	}
	if gone && veto {
		d.Cause = vetoCause(w, f)
	}
}

// witnessProves says whether a released witness would prove the owner gone: the one instrument that reaches into
// another namespace (§5 of the design), within one boot and on a local filesystem, and only where the owner itself
// held it to its end.
func (d *Diagnosis) witnessProves(f *facts) bool {
	r := d.Owner
	if d.Identity != process.Unavailable || r.Process == nil || !probeable(r.PID) || !f.own.Instance.Valid() || !local(r, f) {
		return false
	}
	return r.Process.Platform == f.own.Instance.Platform && r.Process.BootID == f.own.Instance.BootID &&
		r.Process.Namespace != f.own.Instance.Namespace &&
		(r.Evidence.Witness == witnessFlock || r.Evidence.Witness == witnessFlockChild)
}

func vetoCause(w string, f *facts) string {
	switch {
	case w == witnessHeld:
		return "the recorded process is gone, but the kernel lock of this file is still held: something that inherited it may still be at work"
	case f.flock == flockTaken || f.flock == flockShared:
		return "the recorded process is gone, but the kernel lock of this file is held by another process"
	case f.flock == flockAbsent:
		return "the recorded process is gone, but this filesystem grants no kernel lock, and without it nothing is removed"
	}
	return "the recorded process is gone, but it handed the lock on, and the kernel lock cannot be seen from here: its command may still be at work"
}

// reclaimableBy reports whether the policy would take the lock on this verdict.
func (d *Diagnosis) reclaimableBy(p Policy) bool { return slices.Contains(d.ReclaimableBy, p) }
