package heirlock

import (
	"fmt"
	"io/fs"
	"strings"
	"unicode"

	"github.com/heirlock/heirlock/internal/kernel"
	"github.com/heirlock/heirlock/process"
)

// Explanation is the verdict in sentences, one line each: who holds the lock and since when, every compared field with
// both values, what follows, and a safe next step. It is computed from the facts of the verdict alone.
func (d *Diagnosis) Explanation() []string {
	e := explanation{}
	switch {
	case d.State == stateFree:
		e.say("%s is free: there is no such file", d.Path)
		return e.lines
	case d.Owner == nil && d.ID == "":
		e.say("%s: %s", d.Path, d.Cause)
	case d.Owner == nil:
		e.say("%s names no owner: %s", d.Path, d.Cause)
	default:
		e.owner(d)
		e.compared(d)
	}
	e.conclusion(d)
	return e.lines
}

// summary is the verdict in one line.
func (d *Diagnosis) summary() string {
	if d.Guard != nil && d.Cause == causeGuard {
		return fmt.Sprintf("its guard %s stands in the way: %s", printable(d.Guard.Path), d.Guard.summary())
	}
	var b strings.Builder
	b.WriteString(d.State)
	if r := d.Owner; r != nil {
		fmt.Fprintf(&b, ", owner process %d on host %s since %s", r.PID, r.Host, r.AcquiredAt)
		if r.Evidence.Label != "" {
			fmt.Fprintf(&b, " (%s)", r.Evidence.Label)
		}
	}
	if d.Identity != "" {
		fmt.Fprintf(&b, ", identity %s", d.Identity)
	}
	if d.Witness != witnessUnknown && d.Witness != "" {
		fmt.Fprintf(&b, ", witness %s", d.Witness)
	}
	if d.Cause != "" {
		fmt.Fprintf(&b, ": %s", d.Cause)
	}
	b.WriteString(d.flocked() + d.takenBy())
	return printable(b.String())
}

type explanation struct{ lines []string }

func (e *explanation) say(format string, args ...any) {
	e.lines = append(e.lines, printable(fmt.Sprintf(format, args...)))
}

// printable keeps what a record or a path says from steering a terminal or reordering the text that is read.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

func (e *explanation) owner(d *Diagnosis) {
	r := d.Owner
	label := ""
	if r.Evidence.Label != "" {
		label = fmt.Sprintf(", labelled %q", r.Evidence.Label)
	}
	e.say("%s is recorded as owned by process %d on host %s since %s%s", d.Path, r.PID, r.Host, r.AcquiredAt, label)
}

func (e *explanation) compared(d *Diagnosis) {
	r, f := d.Owner, d.facts
	if f == nil {
		return
	}
	e.say("machine id: recorded %s, here %s; its source: recorded %s, here %s; host: recorded %s, here %s; the record is about: %s",
		orNone(r.Machine), orNone(f.machine), orNone(r.Evidence.MachineSource), orNone(f.source), r.Host, f.host, d.Attribution)
	own := f.own.Instance
	switch {
	case r.Legacy:
		e.say("the record is of an older generation and names no process instance: a live stranger under its number cannot be told from the owner")
	case r.Process == nil:
		e.say("the owner could not measure its own process instance")
	default:
		e.say("boot id: recorded %s, here %s", r.Process.BootID, orNone(own.BootID))
		e.say("namespaces: recorded %s, here %s", r.Process.Namespace, orNone(own.Namespace))
	}
	if f.ownErr != nil {
		e.say("this process could not measure itself: %v", f.ownErr)
	}
	e.probed(d)
	e.witness(d)
}

func (e *explanation) probed(d *Diagnosis) {
	r, f := d.Owner, d.facts
	if f.seen == nil {
		return
	}
	switch f.seen.Presence {
	case process.Absent:
		e.say("process %d: no process has this number", r.PID)
	case process.Exited:
		e.say("process %d: all its threads have exited", r.PID)
	case process.Running:
		e.say("process %d runs", r.PID)
	default:
		e.say("process %d: what runs there is unknown (%v)", r.PID, f.seenErr)
	}
	if f.seen.Presence == process.Running && r.Process != nil {
		e.say("start: recorded %s, seen %s; pidfd id: recorded %s, seen %s", r.Process.StartID,
			orNone(f.seen.Instance.StartID), orNone(r.Evidence.PidfdID), orNone(f.seen.PidfdID))
	}
}

func (e *explanation) witness(d *Diagnosis) {
	r, f := d.Owner, d.facts
	file := r.Evidence.File
	if file.FS != "" {
		e.say("lock file: recorded type %s (%s) device %s inode %s, seen type %s (%s) device %s inode %s",
			file.FS, kernel.KnownFilesystem(file.FS).Scope, file.Dev, file.Ino, orNone(f.fs.Type), f.fs.Scope, f.dev, f.ino)
	}
	by := orNone(r.Evidence.Witness)
	if r.Evidence.HandedOn {
		by += ", handed on"
	}
	switch {
	case f.flock == flockNotAsked:
		e.say("kernel lock (recorded: %s): not asked", by)
	default:
		e.say("kernel lock (recorded: %s): %s", by, d.Witness)
	}
}

// conclusion says what follows and what is safe to do. No advice here, followed to the letter, may lead to two owners.
func (e *explanation) conclusion(d *Diagnosis) {
	switch d.State {
	case stateHeld:
		e.say("held: %s; wait for it, or end it%s", heldBy(d), d.shownBy())
	case stateStale:
		e.say("stale: the owner is provably gone (%s); policies reclaim-stale and reclaim-released take the lock", d.Identity)
	case stateOwnerless:
		e.say("ownerless: the file holds no record; a power cut can leave that where --durable was not used, or another program wrote it%s%s", d.flocked(), d.advice())
	case stateUnproven:
		if d.reclaimableBy(ReclaimReleased) {
			e.say("unproven: %s; the owner's kernel lock proves more: policy reclaim-released takes the lock if nobody holds it", d.Cause)
			return
		}
		e.say("unproven: %s%s%s", orNone(d.Cause), d.flocked(), d.advice())
	}
}

// flocked says that the kernel lock stands in the way. Of an owner that is gone the cause has said so.
func (d *Diagnosis) flocked() string {
	switch {
	case d.facts == nil || d.State != stateOwnerless && d.State != stateUnproven:
		return ""
	case d.Liveness == process.Gone:
		return d.shownBy()
	case d.flockTaken():
		return "; another process holds the kernel lock of this file, and while it does nothing is removed" + d.shownBy()
	case d.facts.flock == flockAbsent:
		return "; this filesystem grants no kernel lock, and without it nothing is removed"
	}
	return ""
}

func (d *Diagnosis) flockTaken() bool {
	return d.facts != nil && (d.facts.flock == flockTaken || d.facts.flock == flockShared)
}

// shownBy names the program that shows who has a file open, if a kernel lock is all that is known.
func (d *Diagnosis) shownBy() string {
	if d.Liveness == process.Alive || !d.flockTaken() || printable(d.Path) != d.Path {
		return ""
	}
	return " (fuser -v " + pathWord(d.Path) + " shows who has it open)"
}

// takenBy names the policy that a refusal lacked.
func (d *Diagnosis) takenBy() string {
	switch {
	case d.State == stateStale:
		return "; policy reclaim-stale takes it"
	case d.reclaimableBy(ReclaimReleased):
		return "; policy reclaim-released takes it if nobody holds its kernel lock"
	}
	return ""
}

// advice is the way out of a lock that nothing proves; none where even an operator's word would be refused.
func (d *Diagnosis) advice() string {
	switch {
	case d.ID == "":
		return d.unread()
	case d.flockTaken() || d.facts != nil && d.facts.flock == flockAbsent:
		return ""
	}
	lock := d.Path
	if d.guarded != "" {
		lock = d.guarded
	}
	path := pathWord(lock)
	if printable(lock) != lock {
		path = "and its path" // pasted, a name that cannot be printed would be another name
	}
	return fmt.Sprintf("; if you have made sure that its owner, and everything the owner started, has ended, remove exactly this one with: heirlock reclaim --id=%s %s",
		shellWord(d.ID), path)
}

// unread is the way out where nothing could be read.
func (d *Diagnosis) unread() string {
	switch {
	case d.Cause == causeChanging:
		return "; find out who writes to it"
	case strings.HasSuffix(d.Cause, fs.ErrPermission.Error()):
		return "; ask as the user whose file it is, or as root"
	}
	return "; look at what it is, and choose another path, or remove it when nothing uses it"
}

func heldBy(d *Diagnosis) string {
	switch {
	case d.Liveness != process.Alive:
		return "the owner's kernel lock is held"
	case d.Identity == process.Legacy:
		return fmt.Sprintf("process number %d is in use", d.Owner.PID)
	}
	return "the recorded process is alive"
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// pathWord is a path that can be pasted and is no flag.
func pathWord(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	return shellWord(path)
}

// shellWord quotes a word so that it can be pasted.
func shellWord(s string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+=:,@%", r)
	}
	if s != "" && s[0] != '-' && strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
