// Command timings measures the lock, the waiting for it and the journal, beside rivals and the bare system calls.
//
//	go -C bench run ./timings [-rounds N] [-docs DIR] [-root DIR] [uncontended|ways|refused|command|handoff|kill|crowd|idle|
//	                          submit|latency|paced|slow|read|open|pipe]…
//	go -C bench run ./timings [-gib N] memory
//
// Without a name it measures all of the first. Each round runs all peers, in another order; the files are in the temporary
// directory, whose filesystem is what is measured (TMPDIR). With -docs it writes timings.md and timings.svg into DIR.
//
// Linux. It installs nothing; what is not installed is said, and a goal that needs it counts as not measured. It ends with
// the goals and one line, the verdict. The exit status is 0 if no goal was missed, 1 if one was or a measurement failed, 64
// for an argument that it does not know.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/heirlock/heirlock/bench/timings/account"
	"github.com/heirlock/heirlock/bench/timings/journals"
	"github.com/heirlock/heirlock/bench/timings/locks"
	"github.com/heirlock/heirlock/bench/timings/role"
)

var (
	rounds = flag.Int("rounds", 10, "rounds, in each of which all peers run")
	docs   = flag.String("docs", "", "write timings.md and timings.svg into this directory")
	root   = flag.String("root", "..", "heirlock's source")
	gib    = flag.Int("gib", 1, "size of the file that memory reads, in GiB")
)

type measurement struct {
	name string
	run  func(dir string, rounds int) error
}

// measurements are what is measured by default, and memory, which wants a disk.
var measurements = []measurement{
	{"uncontended", locks.Uncontended},
	{"ways", locks.Ways},
	{"refused", locks.Refused},
	{"command", func(dir string, rounds int) error { return locks.Command(dir, *root, rounds) }},
	{"handoff", locks.HandOff},
	{"kill", locks.Kill},
	{"crowd", locks.Crowd},
	{"idle", locks.Idle},
	{"submit", journals.Submit},
	{"latency", journals.Latency},
	{"paced", journals.Paced},
	{"slow", journals.Slow},
	{"read", journals.Read},
	{"open", journals.Open},
	{"pipe", func(dir string, rounds int) error { return journals.Pipe(dir, *root, rounds) }},
	{"memory", func(dir string, _ int) error { return journals.Memory(dir, *gib) }},
}

var roles = map[string]func(args []string) error{
	"hold": locks.Hold, "member": locks.Member, "many": locks.Many, "slow": journals.SubmitSlowly, "reader": journals.Reader,
}

func main() {
	if r := role.Current(); r != "" {
		if err := roles[r](os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	if !run(chosen(flag.Args())) {
		os.Exit(1)
	}
}

// chosen are the measurements of these names.
func chosen(names []string) (of []measurement) {
	if len(names) == 0 {
		return slices.DeleteFunc(slices.Clone(measurements), func(m measurement) bool { return m.name == "memory" })
	}
	for _, name := range names {
		i := slices.IndexFunc(measurements, func(m measurement) bool { return m.name == name })
		if i < 0 {
			fmt.Fprintf(os.Stderr, "timings: no measurement %q\n", name)
			os.Exit(64)
		}
		of = append(of, measurements[i])
	}
	return of
}

// run measures, writes and judges. A measurement that fails does not keep the others from running.
func run(of []measurement) bool {
	for _, m := range of {
		dir, err := os.MkdirTemp("", "timings-")
		if err == nil {
			err = m.run(dir, max(*rounds, 1))
		}
		if err != nil {
			account.Failed(m.name, err)
		}
		_ = os.RemoveAll(dir)
	}
	if *docs != "" {
		if err := account.Write(*docs); err != nil {
			account.Failed("document", err)
		}
	}
	return account.Verdict()
}
