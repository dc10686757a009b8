package heirlock

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/heirlock/heirlock/internal/kernel"
	"github.com/heirlock/heirlock/process"
)

const (
	rootNamespaces  = "pid:[4026531836];time:[4026531834]"
	otherNamespaces = "pid:[4026532001];time:[4026531834]"
)

var errSeen = errors.New("reason of the probe")

// scene is one case of the truth table: a record, and the facts about it.
type scene struct {
	reading
	facts
}

// deadOwner is the scene that the table's rows change: an owner of this machine and boot whose number is free, seen
// through its own inode on a local filesystem, with the flock in our hands.
func deadOwner() scene {
	var s scene
	s.content, s.id, s.record = validOwner, "0190", fullRecord()
	s.record.Evidence.Witness, s.record.Evidence.HandedOn = witnessFlock, false
	own := *s.record.Process
	own.PID, own.StartID = 99, "60000"
	s.facts = facts{
		own: process.Observation{Presence: process.Running, Instance: own, PidfdID: "7000"}, host: "web-1", machine: "3d12", source: "machine-id",
		fs: kernel.KnownFilesystem("ef53"), dev: "64768", ino: "9977906", flock: flockFree,
		seen: &process.Observation{Presence: process.Absent},
	}
	return s
}

type change = func(*scene)

func seen(o process.Observation) change { return func(s *scene) { s.seen, s.seenErr = &o, errSeen } }

// runs: at the number runs a process with this start and pidfd id, "" where they could not be read.
func runs(start, id string) change {
	o := process.Observation{Presence: process.Running, PidfdID: id}
	if start != "" {
		o.Instance = *fullRecord().Process
		o.Instance.StartID = start
	}
	return seen(o)
}

func flock(f flockState) change { return func(s *scene) { s.flock = f } }
func kept(w string) change {
	return func(s *scene) { s.record.Evidence.Witness = w; s.record.Evidence.HandedOn = w != witnessFlock }
}
func withFilesystem(t string) change { return func(s *scene) { s.fs = kernel.KnownFilesystem(t) } }
func recordedFilesystem(t string) change {
	return func(s *scene) { s.record.Evidence.File.FS = t }
}

// The changes that need no argument.
var (
	exited    = seen(process.Observation{Presence: process.Exited})
	absent    = seen(process.Observation{Presence: process.Absent})
	unseen    = seen(process.Observation{Presence: process.Unknown})
	owner     = runs("53518", "5036")
	notProbed = func(s *scene) { s.seen = nil }

	otherBoot      = func(s *scene) { s.own.Instance.BootID = "c3c3" }
	otherNamespace = func(s *scene) { s.own.Instance.Namespace = otherNamespaces }
	otherTime      = func(s *scene) { s.own.Instance.Namespace = "pid:[4026531836];time:[4026532002]" }
	onDarwin       = func(s *scene) { s.own.Instance.Platform = "darwin"; s.own.Instance.Namespace = "darwin" }
	unmeasured     = func(s *scene) {
		s.own, s.ownErr = process.Observation{Presence: process.Running}, errors.New("no proc")
	}

	otherMachine = func(s *scene) { s.machine = "4e23" }
	noMachine    = func(s *scene) { s.machine, s.source = "", "" }
	otherHost    = func(s *scene) { s.host = "web-2" }
	anonymous    = func(s *scene) { s.record.Machine, s.record.Evidence.MachineSource = "", "" }
	declaredHere = func(s *scene) { s.source = "declared" }
	declaredHim  = func(s *scene) { s.record.Evidence.MachineSource = "declared" }

	theirs    = func(s *scene) { s.record.Evidence = Evidence{} }
	null      = func(s *scene) { s.record.Process = nil }
	legacy    = func(s *scene) { s.record.Process, s.record.Legacy, s.record.Evidence = nil, true, Evidence{} }
	otherView = func(s *scene) { s.ino = "1" }
	otherDev  = func(s *scene) { s.dev = "1" }
	hugePID   = func(s *scene) { s.record.PID = 1 << 31 }
	largePID  = func(s *scene) { s.record.PID = 1<<31 - 1; s.record.Process.PID = 1<<31 - 1 }
)

// outcome is a verdict without its words.
type outcome struct {
	state, attribution string
	liveness           process.Liveness
	identity           process.Identity
	witness            string
	by                 []Policy
}

func outcomeOf(d Diagnosis) outcome {
	return outcome{d.State, d.Attribution, d.Liveness, d.Identity, d.Witness, d.ReclaimableBy}
}

var (
	byBoth     = []Policy{ReclaimStale, ReclaimReleased}
	byReleased = []Policy{ReclaimReleased}
)

// here is an outcome about this machine.
func here(state string, l process.Liveness, i process.Identity, witness string, by ...Policy) outcome {
	return outcome{state, thisMachine, l, i, witness, by}
}

func stale(i process.Identity, witness string) outcome {
	return here(stateStale, process.Gone, i, witness, byBoth...)
}
func vetoed(i process.Identity, witness string) outcome {
	return here(stateUnproven, process.Gone, i, witness)
}
func unavailable(witness string, by ...Policy) outcome {
	return here(stateUnproven, process.NotProbed, process.Unavailable, witness, by...)
}
func alive(i process.Identity, witness string) outcome {
	return here(stateHeld, process.Alive, i, witness)
}
func elsewhere(attribution, witness string) outcome {
	return outcome{stateUnproven, attribution, process.NotProbed, "", witness, nil}
}

const (
	released = witnessReleased
	unknown  = witnessUnknown
)

type row struct {
	name    string
	changes []change
	want    outcome
}

func of(changes ...change) []change { return changes }

func checkRows(t *testing.T, rows []row) {
	t.Helper()
	for _, c := range rows {
		s := deadOwner()
		for _, do := range c.changes {
			do(&s)
		}
		d := judge("x.lock", s.reading, s.facts)
		if got := outcomeOf(d); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v\nbecause %s", c.name, got, c.want, d.Cause)
		}
		if certain := c.want.liveness == process.Alive || c.want.state == stateStale; (d.Cause == "") != certain {
			t.Errorf("%s: cause %q", c.name, d.Cause)
		}
		if d.Owner == nil || d.Owner.PID != s.record.PID || d.ID != "0190" || d.Path != "x.lock" || d.Filesystem.Scope != string(s.fs.Scope) || d.Filesystem.Type != s.fs.Name {
			t.Errorf("%s: owner %+v of %q, id %q, filesystem %+v", c.name, d.Owner, d.Path, d.ID, d.Filesystem)
		}
	}
}

// Rule 1: is the record about this machine?
func TestJudgeAttribution(t *testing.T) {
	another, nobody := elsewhere(anotherMachine, released), elsewhere(unattributable, released)
	ours, otherBootHere := stale(process.PIDGone, released), stale(process.DifferentBoot, released)
	checkRows(t, []row{
		{"equal ids", of(), ours},
		{"equal ids, other host", of(otherHost), ours},
		{"equal ids, other boot", of(otherBoot), otherBootHere},
		{"equal ids, other boot and host", of(otherBoot, otherHost), otherBootHere},
		{"unequal ids, equal boots: one kernel, two images", of(otherMachine), ours},
		{"unequal ids, equal boots, other host", of(otherMachine, otherHost), ours},
		{"unequal ids, other boot", of(otherMachine, otherBoot), another},
		{"unequal ids, other boot, he declared his", of(otherMachine, otherBoot, declaredHim), another},
		{"unequal ids, ours not measured", of(otherMachine, unmeasured), another},
		{"unequal ids, his not measured", of(otherMachine, null), another},
		{"unequal ids, legacy", of(otherMachine, legacy, notProbed), elsewhere(anotherMachine, unknown)},
		{"no id here, equal hosts", of(noMachine, otherBoot), otherBootHere},
		{"no id here, other host", of(noMachine, otherBoot, otherHost), nobody},
		{"no id here, other host, equal boots", of(noMachine, otherHost), ours},
		{"no id there, equal hosts", of(anonymous, otherBoot), otherBootHere},
		{"no id there, other host", of(anonymous, otherBoot, otherHost), nobody},
		{"no id there, other host, equal boots", of(anonymous, otherHost), ours},
		{"no ids, equal hosts", of(noMachine, anonymous, otherBoot), otherBootHere},
		{"no ids, other host, not measured", of(noMachine, anonymous, otherHost, unmeasured), nobody},
		{"no ids, other host, null", of(noMachine, anonymous, otherHost, null), nobody},
		{"no ids, other host, legacy", of(noMachine, legacy, anonymous, otherHost, notProbed), elsewhere(unattributable, unknown)},
		// The witness is about the inode and vetoes whatever the record says of machines.
		{"another machine, witness held", of(otherMachine, otherBoot, flock(flockTaken)), outcome{stateHeld, anotherMachine, process.NotProbed, "", witnessHeld, nil}},
		{"another machine, alive at his number", of(otherMachine, otherBoot, owner), another},
	})
}

// Rule 3: a record that names no process instance is judged by its bare number.
func TestJudgeLegacy(t *testing.T) {
	is := func(state string, l process.Liveness, by ...Policy) outcome {
		return here(state, l, process.Legacy, unknown, by...)
	}
	gone, lives, refused := is(stateStale, process.Gone, byBoth...), is(stateHeld, process.Alive), is(stateUnproven, process.NotProbed)
	checkRows(t, []row{
		{"absent", of(legacy), gone},
		{"exited", of(legacy, exited), gone},
		{"runs", of(legacy, owner), lives},
		{"a stranger runs there", of(legacy, runs("60001", "7001")), lives},
		{"runs, unreadable", of(legacy, runs("", "")), lives},
		{"unknown", of(legacy, unseen), lives},
		{"absent, other PID namespace", of(legacy, otherNamespace), refused},
		{"exited, other PID namespace", of(legacy, exited, otherNamespace), refused},
		{"runs, other PID namespace", of(legacy, owner, otherNamespace), lives},
		{"absent, other time namespace", of(legacy, otherTime), gone},
		{"absent, no time namespaces", of(legacy, func(s *scene) { s.own.Instance.Namespace = "pid:[4026531836];" }), gone},
		{"absent, namespace that begins alike", of(legacy, func(s *scene) { s.own.Instance.Namespace = "pid:[40265318360];" }), refused},
		{"absent, macOS", of(legacy, onDarwin), gone},
		{"absent, not measured", of(legacy, unmeasured), refused},
		{"runs, not measured", of(legacy, unmeasured, owner), lives},
		{"not probed", of(legacy, notProbed), refused},
		{"number that no process can have", of(func(s *scene) { s.record.PID = 1 << 31 }, legacy), refused},
		{"largest number", of(func(s *scene) { s.record.PID = 1<<31 - 1 }, legacy), gone},
		{"absent, on a shared filesystem", of(legacy, withFilesystem("6969")), gone},
		{"absent, flock taken", of(legacy, flock(flockTaken)), is(stateUnproven, process.Gone)},
		{"absent, no flock to be had", of(legacy, flock(flockAbsent)), is(stateUnproven, process.Gone)},
		{"absent, flock not asked", of(legacy, flock(flockNotAsked)), gone},
	})
}

// Rules 4, 6, 7 and 8: the evidence within one boot.
func TestJudgeInstance(t *testing.T) {
	checkRows(t, []row{
		{"process null", of(null), unavailable(released)},
		{"process null, alive at his number", of(null, owner), unavailable(released)},
		{"not measured", of(unmeasured), unavailable(released)},
		{"another platform", of(onDarwin), unavailable(released)},
		{"another platform and boot", of(onDarwin, otherBoot), unavailable(released)},
		{"number that no process can have", of(hugePID), unavailable(released)},
		{"number that no process can have, other boot", of(hugePID, otherBoot), unavailable(released)},
		{"largest number", of(largePID), stale(process.PIDGone, released)},

		{"absent", of(absent), stale(process.PIDGone, released)},
		{"exited", of(exited), stale(process.PIDGone, released)},
		{"other start", of(runs("60001", "")), stale(process.ReusedPID, released)},
		{"other start, other pidfd id", of(runs("60001", "7001")), stale(process.ReusedPID, released)},
		{"equal starts, other pidfd id", of(runs("53518", "7001")), stale(process.ReusedPID, released)},
		{"start unreadable, other pidfd id", of(runs("", "7001")), stale(process.ReusedPID, released)},
		{"other start, equal pidfd ids", of(runs("60001", "5036")), unavailable(released)},
		{"start unreadable", of(runs("", "")), unavailable(released)},
		{"start unreadable, equal pidfd ids", of(runs("", "5036")), unavailable(released)},
		{"unknown", of(unseen), unavailable(released)},
		{"not probed", of(notProbed), unavailable(released)},
		{"equal", of(owner), alive(process.Matched, released)},
		{"equal starts, no pidfd id seen", of(runs("53518", "")), alive(process.Matched, released)},
		{"equal, record of theirs", of(theirs, owner), alive(process.Matched, unknown)},
		{"absent, record of theirs", of(theirs), stale(process.PIDGone, unknown)},
		{"absent, on a shared filesystem: one boot is one kernel", of(withFilesystem("6969"), recordedFilesystem("6969")), stale(process.PIDGone, released)},
	})
}

// Rule 5: another boot ended everything, unless the record may be of another machine, or its boot id an invention.
func TestJudgeOtherBoot(t *testing.T) {
	nfs := func(s *scene) { withFilesystem("6969")(s); recordedFilesystem("6969")(s) }
	gone := stale(process.DifferentBoot, released)
	unseenView := stale(process.DifferentBoot, unknown)
	declared := func(s *scene) { declaredHere(s); declaredHim(s) }
	checkRows(t, []row{
		{"absent", of(otherBoot), gone},
		{"not probed", of(otherBoot, notProbed), gone},
		{"a process like his", of(otherBoot, owner), gone},
		{"other namespaces too", of(otherBoot, otherNamespace), gone},

		{"not local", of(otherBoot, nfs), unavailable(unknown)},
		{"not local there", of(otherBoot, recordedFilesystem("6969")), unavailable(unknown)},
		{"not local here", of(otherBoot, withFilesystem("6969")), unavailable(unknown)},
		{"unknown type", of(otherBoot, withFilesystem("187"), recordedFilesystem("187")), unavailable(unknown)},
		{"unknown type here", of(otherBoot, withFilesystem("")), unavailable(unknown)},
		{"two local types", of(otherBoot, withFilesystem("794c7630")), unseenView},
		{"record names no type", of(otherBoot, recordedFilesystem("")), unseenView},
		{"record names no type, not local here", of(otherBoot, recordedFilesystem(""), withFilesystem("6969")), unavailable(unknown)},

		{"not local, declared", of(otherBoot, nfs, declared), unseenView},
		{"not local, declared, other host", of(otherBoot, nfs, declared, otherHost), unseenView},
		{"not local, only ours declared", of(otherBoot, nfs, declaredHere), unavailable(unknown)},
		{"not local, only his declared", of(otherBoot, nfs, declaredHim), unavailable(unknown)},
		{"not local, other ids declared", of(otherBoot, nfs, declared, otherMachine), elsewhere(anotherMachine, unknown)},
		{"not local, he declared none", of(otherBoot, nfs, declared, func(s *scene) { s.record.Machine = "" }), unavailable(unknown)},

		{"theirs, absent", of(otherBoot, theirs), unseenView},
		{"theirs, exited", of(otherBoot, theirs, exited), unseenView},
		{"theirs, other start", of(otherBoot, theirs, runs("60001", "")), unseenView},
		{"theirs, a process like his", of(otherBoot, theirs, owner), unavailable(unknown)},
		{"theirs, start unreadable", of(otherBoot, theirs, runs("", "")), unavailable(unknown)},
		{"theirs, unknown", of(otherBoot, theirs, unseen), unavailable(unknown)},
		{"theirs, not probed", of(otherBoot, theirs, notProbed), unavailable(unknown)},
		{"theirs, other namespaces", of(otherBoot, theirs, otherNamespace), unavailable(unknown)},
		{"theirs, not local here", of(otherBoot, theirs, withFilesystem("6969")), unavailable(unknown)},

		// The boot ended the children as well.
		{"handed on, unseen", of(otherBoot, otherView, kept(witnessFlockChild)), unseenView},
		{"child, unseen", of(otherBoot, otherView, kept(witnessChild)), unseenView},
		{"handed on without a flock", of(otherBoot, kept("")), unseenView},
		{"witness held: a cloned identity", of(otherBoot, flock(flockTaken)), here(stateHeld, process.Gone, process.DifferentBoot, witnessHeld)},
		{"flock taken, unseen", of(otherBoot, otherView, flock(flockTaken)), vetoed(process.DifferentBoot, unknown)},
		{"no flock to be had", of(otherBoot, flock(flockAbsent)), vetoed(process.DifferentBoot, unknown)},
	})
}

// §5: what the witness says, vetoes and proves: kind of witness × what flock answered × view × namespaces.
func TestJudgeWitness(t *testing.T) {
	var rows []row
	add := func(want outcome, changes ...change) {
		rows = append(rows, row{fmt.Sprintf("%d", len(rows)), changes, want})
	}
	inNamespace := of(otherNamespace, notProbed)
	// One line per witness of the record, of an owner that is gone and of one in another namespace; the columns are what
	// flock answered: free, not asked, taken, absent.
	const held, vetoed, taken, proven, nothing = "held", "vetoed", "taken", "proven", "nothing"
	for _, c := range []struct {
		witness   string
		handedOn  bool
		sameView  bool
		gone      [4]string
		elsewhere [4]string
	}{
		{witnessFlock, false, true, [4]string{taken, taken, held, vetoed}, [4]string{proven, proven, held, nothing}},
		{witnessFlock, true, true, [4]string{taken, taken, held, vetoed}, [4]string{proven, proven, held, nothing}},
		{witnessFlockChild, true, true, [4]string{taken, taken, held, vetoed}, [4]string{proven, proven, held, nothing}},
		{witnessFlockChild, false, true, [4]string{taken, taken, held, vetoed}, [4]string{proven, proven, held, nothing}},
		{witnessChild, true, true, [4]string{taken, taken, held, vetoed}, [4]string{nothing, nothing, held, nothing}},
		{"", false, true, [4]string{taken, taken, vetoed, vetoed}, [4]string{nothing, nothing, nothing, nothing}},
		{"", true, true, [4]string{vetoed, vetoed, vetoed, vetoed}, [4]string{nothing, nothing, nothing, nothing}},
		{witnessFlock, false, false, [4]string{taken, taken, vetoed, vetoed}, [4]string{nothing, nothing, nothing, nothing}},
		{witnessFlock, true, false, [4]string{vetoed, vetoed, vetoed, vetoed}, [4]string{nothing, nothing, nothing, nothing}},
		{witnessFlockChild, true, false, [4]string{vetoed, vetoed, vetoed, vetoed}, [4]string{nothing, nothing, nothing, nothing}},
		{witnessFlockChild, false, false, [4]string{vetoed, vetoed, vetoed, vetoed}, [4]string{nothing, nothing, nothing, nothing}},
		{witnessChild, false, false, [4]string{vetoed, vetoed, vetoed, vetoed}, [4]string{nothing, nothing, nothing, nothing}},
	} {
		set := func(s *scene) { s.record.Evidence.Witness, s.record.Evidence.HandedOn = c.witness, c.handedOn }
		for i, f := range []flockState{flockFree, flockNotAsked, flockTaken, flockAbsent} {
			known := c.witness != "" && c.sameView
			w := unknown
			if known && f == flockFree {
				w = witnessReleased
			} else if known && f == flockTaken {
				w = witnessHeld
			}
			gone := map[string]outcome{
				taken:  stale(process.PIDGone, w),
				held:   here(stateHeld, process.Gone, process.PIDGone, w),
				vetoed: here(stateUnproven, process.Gone, process.PIDGone, w),
			}[c.gone[i]]
			apart := map[string]outcome{
				proven:  unavailable(w, byReleased...),
				held:    here(stateHeld, process.NotProbed, process.Unavailable, w),
				nothing: unavailable(w),
			}[c.elsewhere[i]]
			view := func(*scene) {}
			if !c.sameView {
				view = otherView
			}
			add(gone, set, flock(f), view)
			add(apart, append(inNamespace, set, flock(f), view)...)
		}
	}
	for _, view := range of(otherView, otherDev, withFilesystem("794c7630")) { // each of the three makes another view
		add(stale(process.PIDGone, unknown), view)
		add(unavailable(unknown), append(inNamespace, view)...)
	}
	// What it takes to prove: one boot, one platform, both measured, local on both sides, namespaces that differ.
	nfs := func(s *scene) { withFilesystem("6969")(s); recordedFilesystem("6969")(s) }
	add(unavailable(witnessReleased, byReleased...), inNamespace...)
	add(unavailable(witnessReleased, byReleased...), otherTime, notProbed)
	add(unavailable(witnessReleased, byReleased...), otherNamespace, owner)
	add(unavailable(witnessReleased), append(inNamespace, nfs)...)
	add(unavailable(unknown), append(inNamespace, nfs, otherBoot)...) // equal numbers of another kernel's file say nothing
	add(unavailable(witnessReleased), append(inNamespace, null)...)
	add(unavailable(witnessReleased), append(inNamespace, unmeasured)...)
	add(unavailable(witnessReleased), append(inNamespace, onDarwin)...)
	add(unavailable(witnessReleased), unseen)
	add(unavailable(witnessReleased), runs("", ""))
	add(unavailable(witnessReleased), append(inNamespace, hugePID, otherBoot)...)
	// A shared flock is no owner's, but keeps the lock from being removed.
	add(here(stateUnproven, process.Gone, process.PIDGone, released), flock(flockShared))
	add(unavailable(released), append(inNamespace, flock(flockShared))...)
	// Two filesystems of which nothing is known are not one.
	add(stale(process.PIDGone, unknown), withFilesystem(""), recordedFilesystem(""))
	// The owner lives: neither a released nor an absent witness matters, and a held one says the same.
	for f, w := range map[flockState]string{flockFree: witnessReleased, flockTaken: witnessHeld, flockAbsent: unknown, flockNotAsked: unknown} {
		add(alive(process.Matched, w), owner, flock(f))
	}
	checkRows(t, rows)
}

// Rule 2, and files without a readable record: there is no owner, and nothing is taken on evidence.
func TestJudgeNoOwner(t *testing.T) {
	f := deadOwner().facts
	for _, c := range []struct {
		r     reading
		state string
	}{
		{reading{free: true}, stateFree},
		{reading{blocked: "a fifo"}, stateUnproven},
		{reading{content: ownerless, reason: "empty", id: "sha256:00"}, stateOwnerless},
		{reading{content: unknownOwner, reason: "pid is odd", id: "sha256:00"}, stateUnproven},
	} {
		for _, state := range []flockState{flockFree, flockTaken, flockAbsent, flockNotAsked} {
			f.flock = state
			d := judge("x.lock", c.r, f)
			want := outcome{c.state, unattributable, process.NotProbed, "", unknown, nil}
			if got := outcomeOf(d); !reflect.DeepEqual(got, want) || d.Owner != nil || d.Cause != c.r.blocked+c.r.reason || d.ID != c.r.id {
				t.Errorf("%+v: %+v owner %v cause %q", c.r, got, d.Owner, d.Cause)
			}
		}
	}
}

// A probe is wanted exactly where a verdict may rest on it: elsewhere the number means nothing.
func TestWantsProbe(t *testing.T) {
	for name, c := range map[string]struct {
		changes []change
		want    bool
	}{
		"one boot": {of(), true}, "one boot, other namespace": {of(otherNamespace), false}, "legacy": {of(legacy), true},
		"legacy, not measured": {of(legacy, unmeasured), true}, "other boot": {of(otherBoot), false},
		"other boot, theirs": {of(otherBoot, theirs), true}, "null": {of(null), false}, "not measured": {of(unmeasured), false},
		"another machine": {of(otherMachine, otherBoot), false}, "another machine, legacy": {of(legacy, otherMachine), false},
		"huge": {of(hugePID), false}, "largest": {of(largePID), true},
	} {
		s := deadOwner()
		for _, do := range c.changes {
			do(&s)
		}
		if got := wantsProbe(&s.record, &s.facts); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// drawScene draws every field from the few values that can matter to another one.
func drawScene(t *rapid.T) scene {
	s := deadOwner()
	pick := func(name string, values ...string) string { return rapid.SampledFrom(values).Draw(t, name) }
	flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
	s.record.Machine, s.machine = pick("machine there", "", "m", "n"), pick("machine here", "", "m", "n")
	if s.source = pick("source here", "machine-id", "declared"); s.machine == "" {
		s.source = ""
	}
	s.record.Host, s.host = pick("host there", "h", "i"), pick("host here", "h", "i")
	e := &s.record.Evidence
	e.MachineSource, e.Witness, e.HandedOn = pick("source there", "machine-id", "declared"), pick("witness", "", "flock", "flock+child", "child"), flag("handed on")
	e.PidfdID = pick("pidfd id there", "", "5", "6")
	e.File.FS, e.File.Ino = pick("type there", "", "ef53", "6969", "187"), pick("inode there", "2", "3")
	e.File.Dev = "64768"
	s.fs, s.ino = kernel.KnownFilesystem(pick("type here", "ef53", "6969", "187")), pick("inode here", "2", "3")
	if flag("theirs") {
		*e = Evidence{}
	}
	p := s.record.Process
	p.Platform, p.BootID, p.Namespace = pick("platform", "linux", "darwin"), pick("boot", "b", "c"), pick("namespace", rootNamespaces, otherNamespaces)
	s.own.Instance.BootID, s.own.Instance.Namespace = pick("boot here", "b", "c"), pick("namespace here", rootNamespaces, otherNamespaces)
	switch pick("process", "measured", "measured", "null", "legacy") {
	case "null":
		s.record.Process = nil
	case "legacy":
		s.record.Process, s.record.Legacy = nil, true
	}
	if flag("not measured") && flag("really") {
		unmeasured(&s)
	}
	start, id := pick("start seen", "", "53518", "60001"), pick("pidfd id seen", "", "5", "6")
	rapid.SampledFrom([]change{notProbed, absent, exited, unseen, runs(start, id), runs(start, id)}).Draw(t, "seen")(&s)
	s.flock = rapid.SampledFrom([]flockState{flockFree, flockFree, flockTaken, flockAbsent, flockNotAsked}).Draw(t, "flock")
	return s
}

// provenGone is DESIGN §4, read from its text: is the recorded process provably gone, and by another boot?
func provenGone(r *Record, f *facts) (gone, byBoot bool) {
	measured := f.ownErr == nil
	own := f.own.Instance
	nobody := f.seen != nil && (f.seen.Presence == process.Absent || f.seen.Presence == process.Exited)
	knownStart := f.seen != nil && f.seen.Presence == process.Running && f.seen.Instance.StartID != ""
	oneBoot := r.Process != nil && measured && r.Process.BootID == own.BootID
	oneMachine := r.Machine == f.machine
	if r.Machine == "" || f.machine == "" {
		oneMachine = r.Host == f.host
	}
	if !oneMachine && !oneBoot || !measured {
		return false, false
	}
	if r.Legacy {
		return nobody && strings.HasPrefix(own.Namespace, "pid:[4026531836];"), false
	}
	if r.Process == nil || r.Process.Platform != own.Platform || r.PID > 1<<31-1 {
		return false, false
	}
	stranger := knownStart && f.seen.Instance.StartID != r.Process.StartID
	if !oneBoot {
		localHere, localThere := f.fs.Type == "ef53", r.Evidence.File.FS == "ef53" || r.Evidence.File.FS == ""
		declared := r.Machine != "" && oneMachine && f.source == "declared" && r.Evidence.MachineSource == "declared"
		believed := r.Evidence.Acquisition != "" || r.Process.Namespace == own.Namespace && (nobody || stranger)
		gone = (localHere && localThere || declared) && believed
		return gone, gone
	}
	if r.Process.Namespace != own.Namespace {
		return false, false
	}
	bothIDs := f.seen != nil && f.seen.Presence == process.Running && f.seen.PidfdID != "" && r.Evidence.PidfdID != ""
	equalIDs := bothIDs && f.seen.PidfdID == r.Evidence.PidfdID
	return nobody || bothIDs && !equalIDs || stranger && !equalIDs, false
}

// mayTake is DESIGN §4 and §5: the policies that would take the lock.
func mayTake(r *Record, f *facts) []Policy {
	e := r.Evidence
	gone, byBoot := provenGone(r, f)
	ownInode := e.File.FS != "" && e.File.FS == f.fs.Type && e.File.Dev == f.dev && e.File.Ino == f.ino
	witnessed := ownInode && e.Witness != ""
	handed := e.HandedOn || e.Witness == "child" || e.Witness == "flock+child"
	ours := f.flock == flockFree || f.flock == flockNotAsked // not asked yet: destroy asks
	switch {
	case !ours:
		return nil
	case gone && (witnessed || !handed || byBoot):
		return byBoth
	case gone || !witnessed || e.Witness == "child":
		return nil
	}
	p, own := r.Process, f.own.Instance
	if p != nil && f.ownErr == nil && p.Platform == own.Platform && p.BootID == own.BootID && p.Namespace != own.Namespace && e.File.FS == "ef53" {
		return byReleased
	}
	return nil
}

// Whatever is recorded and whatever was observed: the verdict takes exactly what the contract lets it take, and no
// evidence that is lost ever opens a door.
func TestJudgeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		d := judge("x.lock", s.reading, s.facts)
		if want := mayTake(&s.record, &s.facts); !slices.Equal(d.ReclaimableBy, want) {
			t.Fatalf("reclaimable by %v, want %v: %+v because %s", d.ReclaimableBy, want, outcomeOf(d), d.Cause)
		}
		gone, _ := provenGone(&s.record, &s.facts)
		if (d.Liveness == process.Gone) != gone {
			t.Fatalf("liveness %s, provably gone: %v", d.Liveness, gone)
		}
		if (d.State == stateHeld) != (d.Liveness == process.Alive || d.Witness == witnessHeld) || (d.State == stateStale) != d.reclaimableBy(ReclaimStale) {
			t.Fatalf("state %s: %+v", d.State, outcomeOf(d))
		}
		if d.Attribution != thisMachine && (d.Identity != "" || d.Liveness != process.NotProbed) || d.reclaimableBy(Refuse) {
			t.Fatalf("%+v", outcomeOf(d))
		}
		for name, lose := range map[string]change{
			"the probe": unseen, "ourselves": unmeasured, "the filesystem": withFilesystem(""), "flock": flock(flockAbsent), "the view": otherView,
		} {
			less := s
			lose(&less)
			for _, p := range judge("x.lock", less.reading, less.facts).ReclaimableBy {
				if !d.reclaimableBy(p) {
					t.Fatalf("without %s: %s takes what it did not take", name, p)
				}
			}
		}
	})
}

// A number that cannot be probed refuses every policy, whatever the witness says.
func TestHugeNumberIsNeverReclaimed(t *testing.T) {
	s := deadOwner()
	hugePID(&s)
	otherNamespace(&s)
	if d := judge("x", s.reading, s.facts); len(d.ReclaimableBy) != 0 || d.State != stateUnproven {
		t.Errorf("%s, reclaimable by %v; want unproven and nobody", d.State, d.ReclaimableBy)
	}
}
