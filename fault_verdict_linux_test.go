package heirlock_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heirlock/heirlock"
	"github.com/heirlock/heirlock/process"
)

// What every test of the fault suite requires of a verdict, and the records it plants.

var everyPolicy = []heirlock.Policy{heirlock.Refuse, heirlock.ReclaimStale, heirlock.ReclaimReleased}

var (
	byNobody   []heirlock.Policy
	byWitness  = []heirlock.Policy{heirlock.ReclaimReleased}
	byLifetime = []heirlock.Policy{heirlock.ReclaimStale, heirlock.ReclaimReleased}
)

// judged requires an exact verdict ("state liveness identity witness") of a contender, the exact policies that would
// take the lock, and words that must stand in cause or explanation. Then every policy outside those tries, and must
// refuse on the same evidence and leave every file as it was.
func judged(t testing.TB, who *agent, path, want string, by []heirlock.Policy, words ...string) {
	t.Helper()
	judgedWith(t, who, path, heirlock.Options{}, want, by, words...)
}

func judgedWith(t testing.TB, who *agent, path string, opts heirlock.Options, want string, by []heirlock.Policy, words ...string) {
	t.Helper()
	before := snapshot(t, filepath.Dir(path))
	seen := who.ask(t, request{Do: "inspect", Path: path, Opts: opts}).Seen
	if seen.String() != want || !slices.Equal(seen.ReclaimableBy, by) {
		t.Fatalf("judged %q, by %q, want %q, by %q; %s", seen, seen.ReclaimableBy, want, by, strings.Join(seen.Explanation, "\n\t"))
	}
	said := seen.Cause + "\n" + strings.Join(seen.Explanation, "\n")
	for _, word := range words {
		if !strings.Contains(said, word) {
			t.Errorf("the explanation does not say %q:\n%s", word, said)
		}
	}
	for _, policy := range everyPolicy {
		if slices.Contains(by, policy) {
			continue
		}
		opts.Policy = policy
		got := who.ask(t, request{Do: "take", Path: path, Opts: opts})
		if got.Refused == nil {
			t.Fatalf("policy %s took it, on %v; want a refusal", policy, got.Inherited)
		}
		if r := got.Refused; r.Liveness != seen.Liveness || r.Identity != seen.Identity || r.Attribution != seen.Attribution || r.ID != seen.ID {
			t.Errorf("policy %s refused on %v (%s), but inspect saw %v (%s)", policy, r, r.Attribution, seen, seen.Attribution)
		}
		if after := snapshot(t, filepath.Dir(path)); after != before {
			t.Fatalf("policy %s refused and left\n%swhere there was\n%s", policy, after, before)
		}
	}
}

// inherited requires that a contender takes the lock under a policy, on this evidence ("identity witness"), is then
// its recorded owner, and leaves no file behind after it released.
func inherited(t testing.TB, who *agent, path string, opts heirlock.Options, want string) {
	t.Helper()
	got := who.ask(t, request{Do: "take", Path: path, Opts: opts})
	if got.Refused != nil || got.Inherited == nil {
		t.Fatalf("policy %s did not inherit: refused on %v", opts.Policy, got.Refused)
	}
	if on := got.Inherited.Identity + " " + got.Inherited.Witness; on != want {
		t.Errorf("inherited on %q, want %q", on, want)
	}
	if now := nobody().ask(t, request{Do: "inspect", Path: path}).Seen; now.ID != got.Got {
		t.Errorf("the lock is owned by %s, want the taker's %s", now.ID, got.Got)
	}
	who.ask(t, request{Do: "release", Path: path})
	onlyFiles(t, filepath.Dir(path))
}

// nobody is the test process as a contender.
func nobody() *agent { return nil }

// snapshot is every file of a directory with its inode, size, time of writing and content.
func snapshot(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range fileNames(t, dir) {
		var st unix.Stat_t
		path := filepath.Join(dir, name)
		if err := unix.Lstat(path, &st); err != nil {
			t.Fatal(err)
		}
		content, _ := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %d %d %v %s\n", name, st.Ino, st.Size, st.Mtim, content)
	}
	return b.String()
}

// fileNames lists a directory, without what a FUSE server keeps of removed files until it has heard that they are
// closed (libfuse, hard_remove).
func fileNames(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".fuse_hidden") {
			names = append(names, e.Name())
		}
	}
	return names
}

// onlyFiles requires that a directory holds exactly these names.
func onlyFiles(t testing.TB, dir string, names ...string) {
	t.Helper()
	if found := fileNames(t, dir); !slices.Equal(found, names) {
		t.Errorf("%s holds %q, want %q", dir, found, names)
	}
}

// plant writes a lock file that some other program might have written.
func plant(t testing.TB, path, record string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
}

// plantRecord plants a record as heirlock writes it. One with evidence says of the planted file what its owner would
// have seen, except what the test has filled in before.
func plantRecord(t testing.TB, path string, r heirlock.Record) {
	t.Helper()
	plant(t, path, "")
	if e := &r.Evidence; e.Acquisition != "" && e.File.FS == "" {
		var st unix.Stat_t
		var fs unix.Statfs_t
		if err := unix.Stat(path, &st); err != nil {
			t.Fatal(err)
		}
		if err := unix.Statfs(path, &fs); err != nil {
			t.Fatal(err)
		}
		e.File.FS = strconv.FormatUint(uint64(uint32(fs.Type)), 16)
		e.File.Dev, e.File.Ino = strconv.FormatUint(st.Dev, 10), strconv.FormatUint(st.Ino, 10)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	plant(t, path, string(text)+"\n")
}

// The generations of the format.
const (
	generationLegacy = "legacy" // no process instance
	generationModern = "modern" // an instance and no evidence, as other programs write it
	generationOurs   = "ours"
)

// recordOf is a record that names a running process of this namespace as the owner.
func recordOf(t testing.TB, pid int, generation string) heirlock.Record {
	t.Helper()
	seen, err := process.Observe(pid)
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	r := heirlock.Record{PID: int64(pid), Host: host, AcquiredAt: "2026-11-30T16:00:00.000Z"}
	r.Machine, _, _ = process.Machine()
	r.Legacy = generation == generationLegacy
	if !r.Legacy {
		r.Process = &seen.Instance
	}
	if generation == generationOurs {
		r.Evidence = heirlock.Evidence{Acquisition: "01900000-0000-7000-8000-000000000000", PidfdID: seen.PidfdID, Witness: "flock"}
		if r.Machine != "" {
			r.Evidence.MachineSource = "machine-id"
		}
	}
	return r
}

// idler is a process that does nothing until its input ends.
func idler(t testing.TB) *actor {
	t.Helper()
	a := launch(t, nil, []string{"/bin/sh", "-c", "echo ready; read -r line"})
	a.expect("ready")
	return a
}
