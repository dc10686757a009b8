// Command timings measures how long a lock takes to change hands, beside rivals and the bare system call in one run.
//
//	go -C bench run ./timings [-rounds N] [-docs DIR] [uncontended|handoff|kill|crowd|idle]…
//
// With -docs it writes what it measured, and a picture of the distributions, as timings.md and timings.svg into DIR. It ends
// with one line that says which goals hold; a goal that is missed is exit status 1.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	if role := os.Getenv("TIMINGS_ROLE"); role != "" {
		if err := roles[role](os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	rounds := flag.Int("rounds", 200, "hand-offs to measure")
	docs := flag.String("docs", "", "write timings.md and timings.svg into this directory")
	flag.Parse()
	what := flag.Args()
	if len(what) == 0 {
		what = []string{"uncontended", "handoff", "kill", "crowd", "idle"}
	}
	for _, w := range what {
		if err := measurements[w](*rounds); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if *docs != "" {
		if err := write(*docs); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if !verdict() {
		os.Exit(1)
	}
}

var measurements = map[string]func(int) error{"uncontended": uncontended, "handoff": handoff, "kill": killed, "crowd": crowd, "idle": idle}

var roles = map[string]func(args []string) error{"hold": hold, "crowd": member, "many": many}

// mono is CLOCK_MONOTONIC in nanoseconds, which all processes share.
func mono() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

// hold takes the lock at each line "take" and gives it back at "give", and says when.
func hold(args []string) error {
	take := lockers[args[0]]
	var release func() error
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		switch in.Text() {
		case "take":
			fmt.Println("waiting")
			var err error
			if release, err = take(args[1]); err != nil {
				return err
			}
			fmt.Println("held", mono())
		case "give":
			at := mono()
			if err := release(); err != nil {
				return err
			}
			fmt.Println("gave", at)
		}
	}
	return nil
}

type actor struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(role string, args ...string) *actor {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), "TIMINGS_ROLE="+role)
	cmd.Stderr = os.Stderr
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	return &actor{cmd, in, bufio.NewReader(out)}
}

func (a *actor) say(line string) { fmt.Fprintln(a.in, line) }

func (a *actor) expect(word string) int64 {
	line, err := a.out.ReadString('\n')
	got, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if err != nil || got != word {
		panic(fmt.Sprintf("got %q (%v), want %s", line, err, word))
	}
	n, _ := strconv.ParseInt(rest, 10, 64)
	return n
}

func (a *actor) stop() {
	a.in.Close()
	a.cmd.Process.Kill()
	a.cmd.Wait()
}

// blocked gives a waiter the time to come to rest.
func blocked() { time.Sleep(20 * time.Millisecond) }

func handoff(rounds int) error {
	return eachLocker("handoff", append(slices.Clone(names), "bare"), rounds, func(name, path string, n int) []int64 {
		a, b := start("hold", name, path), start("hold", name, path)
		defer a.stop()
		defer b.stop()
		a.say("take")
		a.expect("waiting")
		a.expect("held")
		var took []int64
		for range n {
			b.say("take")
			b.expect("waiting")
			blocked()
			a.say("give")
			gave := a.expect("gave")
			took = append(took, b.expect("held")-gave)
			a, b = b, a
		}
		return took
	})
}

func killed(rounds int) error {
	return eachLocker("kill", names, rounds/4, func(name, path string, n int) []int64 {
		var took []int64
		a := start("hold", name, path)
		a.say("take")
		a.expect("waiting")
		a.expect("held")
		for range n {
			b := start("hold", name, path)
			b.say("take")
			b.expect("waiting")
			blocked()
			at := mono()
			a.cmd.Process.Kill()
			took = append(took, b.expect("held")-at)
			a.stop()
			a = b
		}
		a.stop()
		return took
	})
}

// eachLocker measures all lockers in turn, in slices, so that whatever the machine does reaches all.
func eachLocker(what string, names []string, rounds int, measure func(name, path string, n int) []int64) error {
	dir, err := os.MkdirTemp("", "timings-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	all := map[string][]int64{}
	const slicesOf = 10
	for slice := range slicesOf {
		for _, name := range names {
			path := filepath.Join(dir, fmt.Sprintf("%s-%d.lock", name, slice))
			all[name] = append(all[name], measure(name, path, max(rounds/slicesOf, 1))...)
		}
	}
	base := 0.0
	for _, name := range names {
		t := all[name]
		note(what, name, t)
		slices.Sort(t)
		p50, p99 := float64(t[len(t)/2])/1e6, float64(t[len(t)*99/100])/1e6
		if base == 0 {
			base = p50
		}
		fmt.Printf("%-8s %-10s p50 %.3f ms  p99 %.3f ms  %.2f × flock\n", what, name, p50, p99, p50/base)
		if most := map[string]float64{"handoff": 2, "kill": 1.6}[what]; name == "heirlock" && most > 0 {
			goal(titles[what]+", ÷ flock", p50/base, most)
		}
	}
	return nil
}

const (
	crowdProcesses = 64
	crowdSections  = 200
)

// member takes the lock a number of times, with 1 ms of work in each section, and prints its waits.
func member(args []string) error {
	take := lockers[args[0]]
	bufio.NewScanner(os.Stdin).Scan() // the start
	n, _ := strconv.Atoi(args[2])
	var waits strings.Builder
	for range n {
		began := mono()
		release, err := take(args[1])
		if err != nil {
			return err
		}
		held := mono()
		for mono() < held+1e6 {
		}
		if err := release(); err != nil {
			return err
		}
		fmt.Fprintln(&waits, held-began)
	}
	_, err := os.Stdout.WriteString(waits.String())
	return err
}

func crowd(int) error {
	dir, err := os.MkdirTemp("", "timings-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	base := 0.0
	for _, name := range names {
		path := filepath.Join(dir, name+".lock")
		var members []*actor
		for range crowdProcesses {
			members = append(members, start("crowd", name, path, strconv.Itoa(crowdSections)))
		}
		time.Sleep(time.Second)
		began := mono()
		for _, m := range members {
			m.say("go")
		}
		var waits []int64
		for _, m := range members {
			for range crowdSections {
				line, err := m.out.ReadString('\n')
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				w, _ := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
				waits = append(waits, w)
			}
		}
		total := float64(mono()-began) / 1e9
		for _, m := range members {
			m.stop()
		}
		note("crowd", name, waits)
		slices.Sort(waits)
		if base == 0 {
			base = total
		}
		median, most := float64(waits[len(waits)/2])/1e6, float64(waits[len(waits)-1])/1e6
		fmt.Printf("crowd    %-10s %.2f s  %.2f × flock  wait median %.1f ms, most %.1f ms (%.1f ×)\n", name, total, total/base, median, most, most/median)
		if name == "heirlock" {
			goal("64 processes × 200, total ÷ flock", total/base, 1.8)
			goal("… longest wait ÷ median", most/median, 20)
		}
	}
	return nil
}
