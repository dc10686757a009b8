package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A locker is one lock as its users run it.
type locker struct {
	name, group string
	form        string // how it is run, for the table
	hold, try   func(path string, work []string) []string
	file        func(path string) string                  // what lies on the disk, nil for the path itself
	recorded    func(path string) int                     // the process number in it, 0 if there is none
	plant       func(path string, pid, livePID int) error // make what lies there one of an earlier boot
	age         time.Duration                             // it believes an owner dead after so long
	library     string                                    // in libraries
	missing     string                                    // why it cannot be run here
	install     string                                    // the apt package
	version     string
}

const (
	groupOurs   = "heirlock"
	groupKernel = "kernel locks"
	groupRecord = "locks that judge a file"
)

func (l *locker) ours() bool { return l.group == groupOurs }

// lockers is the table. Paths are of this command's own copy and of the heirlock command that it built.
func lockers(self, cli, base string) []*locker {
	all := []*locker{
		ours("heirlock run", "heirlock run LOCK -- CMD", cli, "run"),
		ours("heirlock run, released", "heirlock run --policy reclaim-released LOCK -- CMD", cli, "run", "--policy", "reclaim-released"),
		ours("heirlock exec", "heirlock exec LOCK -- CMD", cli, "exec"),
		oursGo(self),
		goLibrary(self, "gofrs", "gofrs/flock", "flock.New(path).TryLock()", groupKernel, "github.com/gofrs/flock"),
		goLibrary(self, "lockedfile", "rogpeppe lockedfile", "lockedfile.MutexAt(path).Lock()", groupKernel, "github.com/rogpeppe/go-internal"),
		goLibrary(self, "juju", "juju/mutex", "mutex.Acquire(Spec{Timeout: 300ms})", groupKernel, "github.com/juju/mutex/v2"),
		wrapper("flock(1)", "flock LOCK CMD", "util-linux", "flock").with("-n"),
		wrapper("flock -o", "flock -o LOCK CMD", "util-linux", "flock", "-o").with("-n"),
		wrapper("setlock", "setlock LOCK CMD", "daemontools", "setlock").with("-n"),
		wrapper("chpst", "chpst -l LOCK CMD", "runit", "chpst", "-L"),
		wrapper("with-lock-ex", "with-lock-ex -f LOCK CMD", "chiark-utils-bin", "with-lock-ex", "-f"),
		nightly(self),
		script("dotlockfile", "dotlockfile -l LOCK && CMD; dotlockfile -u LOCK", "liblockfile-bin", `dotlockfile -r 0 -l "$0"`, `dotlockfile -u "$0"`, 5*time.Minute),
		dotlockPID(),
		script("lockfile(1) -l 60", "lockfile -r 1 -l 60 LOCK && CMD; rm -f LOCK", "procmail", `lockfile -1 -r 1 -l 60 "$0"`, `rm -f "$0"`, time.Minute),
		proper(base),
	}
	for _, l := range all {
		if l.install != "" && l.missing == "" {
			l.version = packageVersion(l.install)
		}
	}
	return all
}

func ours(name, form, cli string, words ...string) *locker {
	argv := func(path string, work []string) []string {
		return append(append(append([]string{cli}, words...), "-n", path, "--"), work...)
	}
	l := &locker{name: name, form: form, group: groupOurs, hold: argv, try: argv, recorded: recordedOurs, plant: plantOurs}
	if _, err := os.Stat(cli); err != nil {
		l.missing = "the command could not be built"
	}
	return l
}

func oursGo(self string) *locker {
	l := goLibrary(self, "heirlock", "heirlock (Go)", "heirlock.TryAcquire(path, Options{Policy: ReclaimStale})", groupOurs, "")
	l.recorded, l.plant = recordedOurs, plantOurs
	return l
}

func goLibrary(self, key, name, form, group, module string) *locker {
	argv := func(verb string) func(string, []string) []string {
		return func(path string, work []string) []string {
			return append([]string{self, ":lib", key, verb, path}, work[1:]...)
		}
	}
	l := &locker{name: name, form: form, group: group, hold: argv("hold"), try: argv("try"), library: key, version: moduleVersion(module)}
	if key == "juju" {
		l.file = func(path string) string { return filepath.Join(filepath.Dir(path), "juju-"+filepath.Base(path)) }
	}
	return l
}

// wrapper is a command that takes the lock and then runs another, in form: words LOCK command.
func wrapper(name, form, apt string, words ...string) *locker {
	argv := func(path string, work []string) []string {
		return append(append(append([]string{}, words...), path), work...)
	}
	l := &locker{name: name, form: form, group: groupKernel, hold: argv, try: argv, install: apt}
	l.need(words[0])
	return l
}

// with adds the word that makes it not wait.
func (l *locker) with(word string) *locker {
	inner := l.hold
	l.try = func(path string, work []string) []string {
		argv := inner(path, work)
		return append([]string{argv[0], word}, argv[1:]...)
	}
	return l
}

func (l *locker) need(program string) {
	if _, err := exec.LookPath(program); err != nil && l.missing == "" {
		l.missing = program + " is not installed"
	}
}

// script is a lock that one command takes and another gives back, as shell scripts use it.
func script(name, form, apt, take, give string, age time.Duration) *locker {
	argv := func(path string, work []string) []string {
		return append([]string{"sh", "-c", take + ` || exit $?; "$@"; code=$?; ` + give + `; exit $code`, path}, work...)
	}
	l := &locker{name: name, form: form, group: groupRecord, hold: argv, try: argv, install: apt, age: age, plant: plantAged}
	l.need(strings.Fields(take)[0])
	return l
}

func dotlockPID() *locker {
	l := script("dotlockfile -p", "dotlockfile -p -l LOCK && CMD; dotlockfile -u LOCK", "liblockfile-bin", `dotlockfile -p -r 0 -l "$0"`, `dotlockfile -u "$0"`, 0)
	l.recorded, l.plant = recordedNumber, plantNumber
	return l
}

func nightly(self string) *locker {
	l := goLibrary(self, "nightlyone", "nightlyone/lockfile", "lockfile.New(path).TryLock()", groupRecord, "github.com/nightlyone/lockfile")
	l.recorded, l.plant = recordedNumber, plantNumber
	return l
}

func proper(base string) *locker {
	js := filepath.Join(base, "peer.js")
	argv := func(path string, work []string) []string { return append([]string{"node", js, path}, work...) }
	l := &locker{name: "proper-lockfile", form: "lockfile.lock(path) of npm", group: groupRecord, hold: argv, try: argv, age: 10 * time.Second, plant: plantAged,
		file: func(path string) string { return path + ".lock" }}
	l.need("node")
	if l.missing != "" {
		return l
	}
	out, err := exec.Command("node", "-p", `require("proper-lockfile/package.json").version`).Output()
	if err != nil {
		l.missing = "node finds no proper-lockfile (npm install --prefix DIR proper-lockfile, and NODE_PATH=DIR/node_modules)"
	}
	l.version = strings.TrimSpace(string(out))
	return l
}

func (l *locker) onDisk(path string) string {
	if l.file == nil {
		return path
	}
	return l.file(path)
}

// recordedPID is the number that the lock names; without one, that of the process itself.
func (l *locker) recordedPID(path string, c *crew) int {
	if l.recorded != nil {
		if pid := l.recorded(path); pid != 0 {
			return pid
		}
	}
	return c.worker().pid
}

func recordedNumber(path string) int {
	text, _ := os.ReadFile(path)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

func recordedOurs(path string) int {
	var r struct{ PID int }
	text, _ := os.ReadFile(path)
	_ = json.Unmarshal(text, &r)
	return r.PID
}

func plantNumber(path string, _, livePID int) error {
	return os.WriteFile(path, []byte(strconv.Itoa(livePID)+"\n"), 0o644)
}

// plantAged leaves a file that is as old as a restart of the machine takes.
func plantAged(path string, _, _ int) error {
	old := time.Now().Add(-time.Minute)
	return os.Chtimes(path, old, old)
}

// otherBoot is a boot id that no kernel has: its digits are not those of a random UUID.
const otherBoot = "00000000-0000-0000-0000-0000000000b0"

// plantOurs makes the record one of another boot, in place, and names a process that runs.
func plantOurs(path string, pid, livePID int) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var r struct{ Process struct{ BootID string } }
	if err := json.Unmarshal(text, &r); err != nil || r.Process.BootID == "" {
		return fmt.Errorf("no boot id in %s (%w)", text, err)
	}
	s := strings.Replace(string(text), r.Process.BootID, otherBoot, 1)
	s = strings.Replace(s, fmt.Sprintf(`"pid":%d,`, pid), fmt.Sprintf(`"pid":%d,`, livePID), 1)
	return os.WriteFile(path, []byte(s), 0o600)
}
