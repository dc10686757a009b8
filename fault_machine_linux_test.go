package heirlock_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heirlock/heirlock"
)

const (
	otherBoot    = "11111111-2222-3333-4444-555555555555"
	otherMachine = "0123456789abcdef0123456789abcdef"
)

// onOtherBoot is the record of a process of this machine's boot before this one.
func onOtherBoot(t testing.TB, generation string) heirlock.Record {
	t.Helper()
	r := recordOf(t, os.Getpid(), generation)
	instance := *r.Process
	instance.BootID = otherBoot
	r.Process = &instance
	return r
}

// A machine that booted again has none of its old processes. On a local filesystem that is proof, in whatever
// namespace the owner lived and whatever it handed on.
func TestFaultOtherBootOnLocalFilesystem(t *testing.T) {
	for name, mount := range map[string]func(testing.TB) string{"ext4": mountExt4, "tmpfs": mountTmpfs} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(mount(t), "x.lock")
			for _, witness := range []string{"flock", "flock+child", "child", ""} {
				r := onOtherBoot(t, generationOurs)
				r.Process.Namespace = "pid:[4026539999];time:[4026531834]"
				r.Evidence.Witness, r.Evidence.HandedOn = witness, witness != "flock"
				plantRecord(t, path, r)
				seen := "released"
				if witness == "" {
					seen = "unknown"
				}
				judged(t, nobody(), path, "stale gone different-boot "+seen, byLifetime, otherBoot, r.Process.BootID)
				inherited(t, nobody(), path, heirlock.Options{Policy: heirlock.ReclaimStale}, "different-boot "+seen)
			}
		})
	}
}

// On a filesystem that another kernel may reach, another boot id may be another machine: ids are cloned with images,
// host names repeat. Only a machine id that both sides declared is believed.
func TestFaultOtherBootOnSharedFilesystem(t *testing.T) {
	path := filepath.Join(mountFUSE(t, t.TempDir()), "x.lock")
	plantRecord(t, path, onOtherBoot(t, generationOurs))
	const refused = "unproven not-probed unavailable unknown"
	judged(t, nobody(), path, refused, byNobody, "not known to be local", otherBoot)

	declared := onOtherBoot(t, generationOurs)
	declared.Machine, declared.Evidence.MachineSource = "rack-7", "declared"
	plantRecord(t, path, declared)
	judged(t, nobody(), path, "unproven not-probed - unknown", byNobody, "another-machine", "rack-7")
	other := heirlock.Options{MachineID: "rack-8"}
	judgedWith(t, nobody(), path, other, "unproven not-probed - unknown", byNobody, "another-machine", "rack-7", "rack-8")

	detected := declared // the same text, but nobody promised that it names one kernel
	detected.Evidence.MachineSource = "machine-id"
	plantRecord(t, path, detected)
	same := heirlock.Options{MachineID: "rack-7"}
	judgedWith(t, nobody(), path, same, refused, byNobody, "not known to be local")

	byChance := onOtherBoot(t, generationOurs) // what one side declared is what the other detected
	if byChance.Machine != "" {
		byChance.Evidence.MachineSource = "declared"
		plantRecord(t, path, byChance)
		judged(t, nobody(), path, refused, byNobody, "not known to be local")
	}

	modern := onOtherBoot(t, generationModern) // names no filesystem: it counts by the contender's view
	plantRecord(t, path, modern)
	judged(t, nobody(), path, "unproven not-probed unavailable unknown", byNobody, "not known to be local")

	plantRecord(t, path, declared)
	same.Policy = heirlock.ReclaimStale
	judgedWith(t, nobody(), path, same, "stale gone different-boot unknown", byLifetime)
	inherited(t, nobody(), path, same, "different-boot unknown")
}

// Both sides must see a local filesystem. A file that is reached by two ways stays doubtful, whichever of them is local.
func TestFaultOtherBootSeenAsLocalByOneSide(t *testing.T) {
	source := t.TempDir()
	local, shared := filepath.Join(source, "x.lock"), filepath.Join(mountFUSE(t, source), "x.lock")
	const refused = "unproven not-probed unavailable unknown"
	plantRecord(t, shared, onOtherBoot(t, generationOurs))
	judged(t, nobody(), local, refused, byNobody, "not known to be local")
	if err := os.Remove(local); err != nil {
		t.Fatal(err)
	}
	plantRecord(t, local, onOtherBoot(t, generationOurs))
	judged(t, nobody(), shared, refused, byNobody, "not known to be local")
	inherited(t, nobody(), local, heirlock.Options{Policy: heirlock.ReclaimStale}, "different-boot released")
}

// Another machine's processes cannot be asked. One kernel that was seen from two images is one machine.
func TestFaultOtherMachine(t *testing.T) {
	needsInitialNamespace(t)
	dead := idler(t)
	records := map[string]heirlock.Record{}
	for _, generation := range generations {
		records[generation] = recordOf(t, dead.cmd.Process.Pid, generation)
	}
	dead.kill()
	for generation, r := range records {
		t.Run(generation, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.lock")
			r.Machine = otherMachine
			if r.Process != nil {
				plantRecord(t, path, r)
				judged(t, nobody(), path, "stale gone pid-gone "+witnessOf(generation, "released"), byLifetime, "this-machine")
				instance := *r.Process
				instance.BootID = otherBoot
				r.Process = &instance
			}
			plantRecord(t, path, r)
			judged(t, nobody(), path, "unproven not-probed - "+witnessOf(generation, "released"), byNobody, "another-machine", otherMachine)
		})
	}
}

// A host that was renamed keeps its machine id, and is recognised by it; a record without a machine id falls back to
// the host name, and a renamed host does not recognise that.
//
//	owner:          takes as "here" ── SIGKILL
//	taker, "here":                              inherits
//	taker, "other":                             inherits, if the record has the machine id (or the boot id)
func TestFaultRenamedHost(t *testing.T) {
	needsInitialNamespace(t)
	renamed := agentIn(t, arranged(t, "hostname renamed.example")...)
	dead := idler(t)
	old := recordOf(t, dead.cmd.Process.Pid, generationLegacy)
	boot := onOtherBoot(t, generationOurs)
	dead.kill()
	if old.Machine == "" {
		t.Skip("needs /etc/machine-id")
	}
	path := filepath.Join(t.TempDir(), "x.lock")
	stale := heirlock.Options{Policy: heirlock.ReclaimStale}
	plantRecord(t, path, old)
	judged(t, renamed, path, "stale gone legacy unknown", byLifetime, "here renamed.example")
	inherited(t, renamed, path, stale, "legacy unknown")
	plantRecord(t, path, boot)
	judged(t, renamed, path, "stale gone different-boot released", byLifetime, "here renamed.example")
	inherited(t, renamed, path, stale, "different-boot released")

	for identity, r := range map[string]heirlock.Record{"legacy unknown": old, "different-boot released": boot} {
		r.Machine, r.Evidence.MachineSource = "", ""
		_, witness, _ := strings.Cut(identity, " ")
		plantRecord(t, path, r)
		judged(t, renamed, path, "unproven not-probed - "+witness, byNobody, "unattributable", "here renamed.example")
		judged(t, nobody(), path, "stale gone "+identity, byLifetime, "this-machine")
		inherited(t, nobody(), path, stale, identity)
	}

	owner := agentIn(t) // the boot id alone recognises a process of this boot
	owner.own(t, path, heirlock.Options{})
	owner.die(t)
	judged(t, renamed, path, "stale gone pid-gone released", byLifetime)
	inherited(t, renamed, path, stale, "pid-gone released")
}

// Another program, in a container whose manager invented a boot id, writes a record that looks like one of another
// boot. Its process may run: here, under the same number and start, or in a namespace that we cannot look into.
//
//	owner, invented boot id:  runs ───────────── SIGKILL
//	host:                          refused by all        inherits, unless the namespaces differ
func TestFaultOtherProgramWithInventedBootID(t *testing.T) {
	owner := idler(t)
	path := filepath.Join(t.TempDir(), "x.lock")
	r := recordOf(t, owner.cmd.Process.Pid, generationModern)
	here := *r.Process
	here.BootID = otherBoot
	elsewhere := here
	elsewhere.Namespace = "pid:[4026539999];time:[4026531834]"
	there := r
	r.Process, there.Process = &here, &elsewhere
	plantRecord(t, path, r)
	judged(t, nobody(), path, "unproven not-probed unavailable unknown", byNobody, "may be the one recorded")
	owner.kill()
	judged(t, nobody(), path, "stale gone different-boot unknown", byLifetime)
	plantRecord(t, path, there)
	judged(t, nobody(), path, "unproven not-probed unavailable unknown", byNobody, elsewhere.Namespace)
	plantRecord(t, path, r)
	inherited(t, nobody(), path, heirlock.Options{Policy: heirlock.ReclaimStale}, "different-boot unknown")
}
