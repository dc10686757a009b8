// Command faults plays the faults that kill locks, over heirlock and its rivals as users run them, and says who was let
// in. It decides by who is alive, through pidfds and a file that only one can make, never by what a lock says of itself.
//
//	go -C bench run ./faults                    the matrix; writes docs/fault-matrix.md and docs/fault-matrix.svg
//	go -C bench run ./faults -only heirlock     heirlock alone; writes nothing
//	go -C bench run ./faults -broken            heirlock with one rule broken at a time: each must be caught
//	go -C bench run ./faults -soak 10m          a farm of crashing processes on several filesystems
//
// Linux, root. It installs nothing; it says what is missing and how to get it. The exit status is 0 if heirlock did in
// every row what it owes, 1 if not, 2 if nothing could be run.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

type options struct {
	only, rows, root, cli string
	broken, verbose       bool
	write                 bool
	soak                  time.Duration
}

func main() {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], ":") {
		os.Exit(play(os.Args[1:]))
	}
	var o options
	flag.StringVar(&o.only, "only", "", "run only lockers whose name begins so; write no documents")
	flag.StringVar(&o.rows, "rows", "", "run only these scenarios, by key, separated by commas; write no documents")
	flag.StringVar(&o.root, "root", "..", "heirlock's source")
	flag.StringVar(&o.cli, "heirlock", "", "this heirlock command, instead of one built from the source")
	flag.BoolVar(&o.broken, "broken", false, "build heirlock with one rule broken at a time, and require that the matrix catches each")
	flag.BoolVar(&o.verbose, "v", false, "print what each contender said")
	flag.DurationVar(&o.soak, "soak", 0, "run a farm of processes for so long instead of the matrix")
	flag.Parse()
	if o.write = o.only == "" && o.rows == "" && o.cli == ""; o.write {
		racerTime *= 2
	}
	os.Exit(run(o))
}

func run(o options) int {
	if os.Getuid() != 0 {
		fmt.Println("verdict: nothing was run: namespaces, mounts and process numbers need root")
		return 2
	}
	if err := apart(); err != nil {
		fmt.Println("verdict: nothing was run:", err)
		return 2
	}
	if o.broken {
		return breakAll(o)
	}
	base, self, cli, err := prepare(o)
	defer os.RemoveAll(base)
	if err != nil {
		fmt.Println("verdict: nothing was run:", err)
		return 2
	}
	if o.soak > 0 {
		return soak(base, self, cli, o.soak)
	}
	return matrix(o, base, self, cli)
}

// apart starts the command once more in a mount namespace of its own: its mounts go with it, however it ends.
func apart() error {
	if os.Getenv("FAULTS_APART") != "" {
		return nil
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return notHere("unshare is not installed (apt-get install util-linux)")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	argv := append([]string{unshare, "--mount", "--propagation", "private", self}, os.Args[1:]...)
	return syscall.Exec(unshare, argv, append(os.Environ(), "FAULTS_APART=1"))
}

// prepare makes a directory that every user can reach, with a copy of this command and the heirlock command in it.
func prepare(o options) (base, self, cli string, err error) {
	if base, err = os.MkdirTemp("", "faults-"); err != nil {
		return
	}
	if err = os.Chmod(base, 0o755); err != nil {
		return
	}
	me, err := os.Executable()
	if err != nil {
		return
	}
	self, cli = filepath.Join(base, "faults"), filepath.Join(base, "heirlock")
	if err = copyFile(me, self); err != nil {
		return
	}
	if err = os.WriteFile(filepath.Join(base, "peer.js"), peerJS, 0o644); err != nil {
		return
	}
	if o.cli != "" {
		return base, self, cli, copyFile(o.cli, cli)
	}
	if out, buildErr := exec.Command("go", "-C", o.root, "build", "-o", cli, "./cmd/heirlock").CombinedOutput(); buildErr != nil {
		err = fmt.Errorf("the heirlock command was not built: %w\n%s", buildErr, out)
	}
	return
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

// cell is what became of one scenario with one locker.
type cell struct {
	outcome
	wrong bool // heirlock owes something else
}

type table struct {
	rows    []scenario
	columns []*locker
	cells   map[string]cell // by row key and locker name
}

func (t *table) at(sc *scenario, l *locker) cell { return t.cells[sc.key+"\x00"+l.name] }

func matrix(o options, base, self, cli string) int {
	t := &table{cells: map[string]cell{}}
	for _, l := range lockers(self, cli, base) {
		if strings.HasPrefix(l.name, o.only) {
			t.columns = append(t.columns, l)
		}
	}
	keys := strings.Split(o.rows, ",")
	for _, sc := range scenarios() {
		if o.rows == "" || slices.Contains(keys, sc.key) {
			t.rows = append(t.rows, sc)
		}
	}
	t.sayMissing()
	for i := range t.rows {
		for _, l := range t.columns {
			c := cellOf(&t.rows[i], l, base, self)
			t.cells[t.rows[i].key+"\x00"+l.name] = c
			t.print(&t.rows[i], l, c, o.verbose)
		}
	}
	if o.write {
		if err := t.write(filepath.Join(o.root, "docs")); err != nil {
			fmt.Println(err)
			return 2
		}
	}
	return t.verdict()
}

func cellOf(sc *scenario, l *locker, base, self string) (c cell) {
	if l.missing != "" {
		return cell{outcome: outcome{Word: notRun, Note: l.missing}}
	}
	dir, err := os.MkdirTemp(base, "stage-")
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	s := &stage{locker: l, dir: dir, path: filepath.Join(dir, "lk"), self: self}
	if err == nil {
		c.outcome, err = sc.play(s)
	}
	s.close()
	os.RemoveAll(dir)
	if _, ok := err.(cannotLock); ok {
		return cell{outcome: outcome{Word: cannot, Note: shorten(err.Error(), 160)}, wrong: l.ours()}
	}
	if err != nil {
		_, here := err.(notHere)
		return cell{outcome: outcome{Word: notRun, Note: shorten(err.Error(), 160)}, wrong: l.ours() && !here}
	}
	c.wrong = l.ours() && sc.deviates(l.name, c.outcome)
	return c
}

func (t *table) print(sc *scenario, l *locker, c cell, verbose bool) {
	line := fmt.Sprintf("%-32s %-24s %s", sc.title, l.name, c.outcome)
	if c.Note != "" {
		line += " (" + c.Note + ")"
	}
	if c.wrong {
		line += "   WRONG: it owes: " + sc.owes(l.name) + ": " + shorten(c.Said, 600)
	}
	fmt.Println(line)
	if verbose && c.Said != "" {
		fmt.Println("      " + shorten(c.Said, 600))
	}
}

// sayMissing lists what cannot be run here, and the line that gets it.
func (t *table) sayMissing() {
	var packages []string
	for _, l := range t.columns {
		if l.missing == "" {
			continue
		}
		fmt.Printf("not run: %s: %s\n", l.name, l.missing)
		if l.install != "" && !slices.Contains(packages, l.install) {
			packages = append(packages, l.install)
		}
	}
	if havePrograms("bindfs") != nil {
		packages = append(packages, "bindfs")
	}
	if havePrograms("strace") != nil {
		packages = append(packages, "strace")
	}
	if len(packages) > 0 {
		fmt.Println("to have all of them: apt-get install", strings.Join(packages, " "))
	}
}

// verdict is the last line, and the exit status.
func (t *table) verdict() int {
	var ours, wrong, doubles, notRuns, rivals int
	for _, sc := range t.rows {
		for _, l := range t.columns {
			c := t.at(&sc, l)
			switch {
			case c.Word == notRun:
				notRuns++
			case l.ours() && c.Word != absent:
				ours++
			}
			if c.wrong {
				wrong++
			}
			if c.Word == double && l.ours() {
				doubles++
			} else if c.Word == double {
				rivals++
			}
		}
	}
	s := fmt.Sprintf("heirlock: %d cases, %d not as owed, %d with two holders; rivals: %d with two holders; %d cells not run", ours, wrong, doubles, rivals, notRuns)
	if wrong > 0 || doubles > 0 {
		fmt.Println("verdict: FAILED:", s)
		return 1
	}
	if ours == 0 {
		fmt.Println("verdict: nothing of heirlock was run:", s)
		return 2
	}
	fmt.Println("verdict: ok:", s)
	return 0
}
