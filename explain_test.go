package heirlock

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/heirlock/heirlock/internal/kernel"
	"github.com/heirlock/heirlock/process"
)

// distinctScene has a value of its own in every field on both sides.
func distinctScene() scene {
	s := deadOwner()
	s.record.Evidence.HandedOn, s.record.Evidence.Witness = true, witnessFlockChild
	s.host, s.machine, s.dev, s.ino = "web-2", "4e23", "2049", "131"
	s.fs = kernel.KnownFilesystem("6969")
	s.own.Instance.BootID, s.own.Instance.Namespace = "c3c3", otherNamespaces
	runs("60001", "7001")(&s)
	s.record.Machine = "3d12"
	return s
}

func explain(s scene) (Diagnosis, string) {
	d := judge("dir/x.lock", s.reading, s.facts)
	return d, strings.Join(d.Explanation(), "\n")
}

// Every compared field appears with both values, whatever the verdict.
func TestExplanationNamesWhatWasCompared(t *testing.T) {
	for name, changes := range map[string][]change{
		"another machine": {},
		"this machine":    {func(s *scene) { s.machine = "3d12" }},
		"held":            {flock(flockTaken)},
	} {
		s := distinctScene()
		for _, do := range changes {
			do(&s)
		}
		_, text := explain(s)
		for _, want := range []string{
			"dir/x.lock", "process 4242", "since 2026-11-30T16:00:00.000Z", `labelled "nightly"`,
			"machine id: recorded 3d12, here " + s.machine, "host: recorded web-1, here web-2",
			"boot id: recorded b2d2, here c3c3",
			"namespaces: recorded " + rootNamespaces + ", here " + otherNamespaces,
			"start: recorded 53518, seen 60001", "pidfd id: recorded 5036, seen 7001",
			"recorded type ef53 (local) device 64768 inode 9977906, seen type 6969 (shared) device 2049 inode 131", "its source: recorded machine-id, here machine-id",
			"recorded: flock+child, handed on",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, text)
			}
		}
	}
}

// What was not recorded or not seen is called none; what could not be observed is called so, with its reason.
func TestExplanationNamesWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		changes []change
		want    []string
	}{
		"machine here":   {of(noMachine), []string{"machine id: recorded 3d12, here none"}},
		"machine there":  {of(anonymous), []string{"machine id: recorded none, here 3d12"}},
		"ourselves":      {of(unmeasured, otherHost), []string{"boot id: recorded b2d2, here none", "namespaces: recorded " + rootNamespaces + ", here none"}},
		"why":            {of(unmeasured, legacy, owner), []string{"this process could not measure itself: no proc"}},
		"no evidence":    {of(theirs, owner), []string{"pidfd id: recorded none, seen 5036", "kernel lock (recorded: none)"}},
		"no start":       {of(runs("", "")), []string{"start: recorded 53518, seen none; pidfd id: recorded 5036, seen none"}},
		"null":           {of(null), []string{"could not measure its own process instance"}},
		"legacy":         {of(legacy, owner), []string{"older generation", "live stranger", "process 4242 runs", "number 4242 is in use"}},
		"absent":         {of(absent), []string{"no process has this number"}},
		"exited":         {of(exited), []string{"all its threads have exited"}},
		"unknown":        {of(unseen), []string{"unknown (reason of the probe)"}},
		"flock unasked":  {of(flock(flockNotAsked)), []string{"kernel lock (recorded: flock): not asked"}},
		"flock released": {of(), []string{"kernel lock (recorded: flock): released"}},
		"flock held":     {of(flock(flockTaken)), []string{"kernel lock (recorded: flock): held"}},
		"flock absent":   {of(flock(flockAbsent)), []string{"kernel lock (recorded: flock): unknown"}},
	} {
		s := deadOwner()
		for _, do := range c.changes {
			do(&s)
		}
		_, text := explain(s)
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, text)
			}
		}
	}
}

// The last sentence says what follows. Only what is unproven or ownerless may be removed by an operator's word, and
// the operator is told what the word has to cover.
func TestExplanationConcludes(t *testing.T) {
	const byID = "if you have made sure that its owner, and everything the owner started, has ended, remove exactly this one with: heirlock reclaim --id=0190 dir/x.lock"
	for _, c := range []struct {
		name    string
		changes []change
		begins  string
		advice  string // of all the advice there is, the only one given
	}{
		{"stale", of(), "stale: the owner is provably gone (pid-gone)", "policies reclaim-stale and reclaim-released take the lock"},
		{"alive", of(owner), "held: the recorded process is alive", "wait for it, or end it"},
		{"legacy number in use", of(legacy, owner), "held: process number 4242 is in use", "wait for it, or end it"},
		{"witness held", of(flock(flockTaken)), "held: the owner's kernel lock is held", "wait for it, or end it (fuser -v dir/x.lock shows who has it open)"},
		{"alive, its lock held", of(owner, flock(flockTaken)), "held: the recorded process is alive", "wait for it, or end it"},
		{"a stranger's lock", of(null, theirs, flock(flockTaken)), "unproven: the record's process instance is null or malformed; another process holds the kernel lock of this file", "(fuser -v dir/x.lock shows who has it open)"},
		{"a stranger's shared lock", of(otherMachine, otherBoot, flock(flockShared)), "unproven: the record is not known to be about this machine (another-machine); another process holds the kernel lock of this file", "(fuser -v dir/x.lock shows who has it open)"},
		{"no kernel locks", of(null, flock(flockAbsent)), "unproven: the record's process instance is null or malformed", "; this filesystem grants no kernel lock, and without it nothing is removed"},
		{"no kernel locks, gone", of(flock(flockAbsent)), "unproven: the recorded process is gone, but this filesystem grants no kernel lock", "but this filesystem grants no kernel lock, and without it nothing is removed"},
		{"gone, a stranger's lock", of(theirs, flock(flockTaken)), "unproven: the recorded process is gone, but the kernel lock of this file is held by another process", "another process (fuser -v dir/x.lock shows who has it open)"},
		{"ownerless, locked", of(func(s *scene) { s.content, s.reason = ownerless, "empty" }, flock(flockTaken)), "ownerless:", "and while it does nothing is removed (fuser -v dir/x.lock shows who has it open)"},
		{"proven by the witness alone", of(otherNamespace, notProbed), "unproven: the namespaces differ", "policy reclaim-released takes the lock if nobody holds it"},
		{"null", of(null), "unproven: the record's process instance is null or malformed", byID},
		{"another machine", of(otherMachine, otherBoot), "unproven: the record is not known to be about this machine (another-machine)", byID},
		{"unknown owner", of(func(s *scene) { s.content, s.reason = unknownOwner, "pid is odd" }), "unproven: pid is odd", byID},
		{"ownerless", of(func(s *scene) { s.content, s.reason = ownerless, "empty" }), "ownerless:", byID},
		{"blocked", of(func(s *scene) { s.blocked, s.id = "a fifo", "" }), "unproven: a fifo", "; look at what it is, and choose another path, or remove it when nothing uses it"},
		{"not ours to read", of(func(s *scene) { s.blocked, s.id = "the file could not be read: permission denied", "" }), "unproven: the file could", "; ask as the user whose file it is, or as root"},
		{"changing", of(func(s *scene) { s.blocked, s.id = causeChanging, "" }), "unproven: changing", "; find out who writes to it"},
		{"free", of(func(s *scene) { s.free = true }), "dir/x.lock is free: there is no such file", ""},
	} {
		s := deadOwner()
		for _, do := range c.changes {
			do(&s)
		}
		d, text := explain(s)
		last := d.Explanation()[len(d.Explanation())-1]
		if !strings.HasPrefix(last, c.begins) || !strings.HasSuffix(last, c.advice) {
			t.Errorf("%s: %q, want %q … %q", c.name, last, c.begins, c.advice)
		}
		for _, advice := range []string{"reclaim --id", "take the lock", "takes the lock", "wait for it", "fuser", "remove it when", "as root"} {
			if strings.Contains(text, advice) && !strings.Contains(c.advice, advice) {
				t.Errorf("%s: also advises %q:\n%s", c.name, advice, text)
			}
		}
	}
}

// A record is written by anybody who may write the file. What it says must not steer a terminal, in no sentence, and
// not be able to begin a line of its own.
func TestNoControlCharacters(t *testing.T) {
	const evil = "\x1b[2J\x1b]0;t\x07\r\nfree\t\x7f\u009b31m\x00"
	s := distinctScene()
	r := &s.record
	r.Host, r.AcquiredAt, r.Machine = evil, evil, evil
	r.Process.BootID, r.Process.Namespace, r.Process.StartID = evil, evil, evil
	e := &r.Evidence
	e.Acquisition, e.Label, e.PidfdID, e.Witness, e.MachineSource = evil, evil, evil, evil, evil
	e.File.FS, e.File.Dev, e.File.Ino = evil, evil, evil
	s.id, s.host = evil, evil
	for name, do := range map[string]change{
		"another machine": func(*scene) {}, "one kernel": func(s *scene) { s.own.Instance.BootID = evil }, "null": null, "legacy": legacy,
		"unknown owner": func(s *scene) { s.content, s.reason = unknownOwner, evil },
		"ownerless":     func(s *scene) { s.content, s.reason = ownerless, evil },
		"blocked":       func(s *scene) { s.blocked = evil },
		"free":          func(s *scene) { s.free = true },
	} {
		s := s
		do(&s)
		d := judge("dir/"+evil, s.reading, s.facts)
		guard := d
		texts := append(d.Explanation(), d.summary(), (&HeldError{Path: evil, Diagnosis: d}).Error())
		d.Guard, d.Cause = &guard, causeGuard
		texts = append(texts, d.summary(), (&HeldError{Path: evil, Diagnosis: d}).Error())
		for _, text := range texts {
			if i := strings.IndexFunc(text, unicode.IsControl); i >= 0 {
				t.Errorf("%s: control character %q in %q", name, text[i:i+1], text)
			}
		}
	}
	if got := printable("é <&> „x“ 日本"); got != "é <&> „x“ 日本" {
		t.Errorf("ordinary text became %q", got)
	}
}

// One line of a refusal: state, owner, label, identity, witness, cause; and the guard instead, if that is in the way.
func TestSummary(t *testing.T) {
	cause := errors.New("enough")
	d := judge("x.lock", deadOwner().reading, deadOwner().facts)
	const owner = ", owner process 4242 on host web-1 since 2026-11-30T16:00:00.000Z (nightly), identity pid-gone"
	err := &HeldError{Path: "x.lock", Diagnosis: d, Waited: 1500*time.Millisecond + time.Microsecond, cause: cause}
	if got, want := err.Error(), "lock not taken: x.lock: stale"+owner+", witness released; policy reclaim-stale takes it; gave up after 1.5s: enough"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	s := deadOwner()
	s.flock = flockAbsent
	guard := judge("x.lock.reclaim", s.reading, s.facts)
	d.Guard = &guard
	if got := d.summary(); strings.Contains(got, "guard") {
		t.Errorf("a guard that is not in the way: %s", got)
	}
	d.Cause = causeGuard
	if got, want := d.summary(), "its guard x.lock.reclaim stands in the way: unproven"+owner+": "+guard.Cause; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	for want, changes := range map[string][]change{
		"; policy reclaim-released takes it if nobody holds its kernel lock":                                                                 of(otherNamespace, notProbed),
		"; another process holds the kernel lock of this file, and while it does nothing is removed (fuser -v x.lock shows who has it open)": of(null, theirs, flock(flockTaken)),
		", identity matched, witness held": of(func(s *scene) { s.flock = flockTaken }, runs("53518", "5036")),
	} {
		s := deadOwner()
		for _, do := range changes {
			do(&s)
		}
		if d := judge("x.lock", s.reading, s.facts); !strings.HasSuffix(d.summary(), want) {
			t.Errorf("got %s, want it to end with %s", d.summary(), want)
		}
	}
	bare := Diagnosis{State: stateUnproven, Witness: witnessUnknown, Liveness: process.NotProbed, Cause: "a fifo"}
	if got, want := bare.summary(), "unproven: a fifo"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A quoted path is one word again when a shell has read it.
func TestShellWord(t *testing.T) {
	words := map[string]string{
		"/srv/x.lock": "/srv/x.lock", "a-b_c+d=e:f,g@h%i": "a-b_c+d=e:f,g@h%i",
		"": "''", "-n": "'-n'", "a b": "'a b'", "a'b": `'a'\''b'`, "'": `''\'''`, "$(id)": "'$(id)'", "`id`": "'`id`'", "~/x": "'~/x'",
		"a;b": "'a;b'", "a\\b": `'a\b'`, "*": "'*'", "a#b": "'a#b'", `"`: `'"'`, "!x": "'!x'", "{a,b}": "'{a,b}'", "é": "'é'", "a\nb": "'a\nb'",
	}
	for word, want := range words {
		if got := shellWord(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell to ask: ", err)
	}
	for word := range words {
		out, err := exec.Command(sh, "-c", "printf '<%s>' "+shellWord(word)+" end").Output()
		if want := "<" + word + "><end>"; string(out) != want || err != nil {
			t.Errorf("%q: the shell read %q, %v", word, out, err)
		}
	}
	if s := deadOwner(); true {
		null(&s)
		d := judge("a dir/it's.lock", s.reading, s.facts)
		if !slices.ContainsFunc(d.Explanation(), func(line string) bool { return strings.HasSuffix(line, ` --id=0190 'a dir/it'\''s.lock'`) }) {
			t.Errorf("the path is not quoted: %q", d.Explanation())
		}
	}
}

// A record's text is pasted into a shell together with the advice: it stays one word, whatever it is.
func TestAdviceQuotesTheID(t *testing.T) {
	s := deadOwner()
	s.record.Process = nil
	s.id = "x; touch /tmp/pwned"
	_, text := explain(s)
	if want := "heirlock reclaim --id='x; touch /tmp/pwned' dir/x.lock"; !strings.Contains(text, want) {
		t.Errorf("%q is missing in\n%s", want, text)
	}
}

// Where even an operator's word is refused, because the kernel lock cannot be had, it is not asked for.
func TestNoAdviceThatWouldBeRefused(t *testing.T) {
	for _, state := range []flockState{flockAbsent, flockTaken} {
		s := deadOwner()
		null(&s)
		s.flock = state
		_, text := explain(s)
		if strings.Contains(text, "heirlock reclaim --id") {
			t.Errorf("flock %s: advice in\n%s", state, text)
		}
	}
}

// A path that begins like a flag is not one when it is pasted.
func TestAdviceForAPathLikeAFlag(t *testing.T) {
	s := deadOwner()
	null(&s)
	d := judge("-n.lock", s.reading, s.facts)
	if text := strings.Join(d.Explanation(), "\n"); !strings.HasSuffix(text, "heirlock reclaim --id=0190 ./-n.lock") {
		t.Error(text)
	}
}

// A guard goes by its own id and the path of its lock.
func TestAdviceForAGuard(t *testing.T) {
	s := deadOwner()
	null(&s)
	d := judge("x.lock.reclaim", s.reading, s.facts)
	d.guarded = "x.lock"
	if text := strings.Join(d.Explanation(), "\n"); !strings.HasSuffix(text, "heirlock reclaim --id=0190 x.lock") {
		t.Error(text)
	}
}

// Text that would reorder or hide what is read is not printed.
func TestBidiControlsAreNotPrinted(t *testing.T) {
	if got := printable("a\u202eb\u2028c\u200bd é\n"); got != "a?b?c?d é?" {
		t.Errorf("%q", got)
	}
}
