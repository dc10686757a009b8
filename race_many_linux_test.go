package heirlock_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/heirlock/heirlock"
)

func init() {
	roles["racer"] = racer
}

// racer contends for the lock in the directory args[0], once for every line it reads: three attempts, and a critical
// section for each that succeeds. It answers "done", with the number each section drew and "dead:<pid>" for each
// owner that it found to have died in its section, or "violation".
func racer(args []string) int {
	dir := args[0]
	readLines(func(line string) bool {
		out := "done"
		for range 3 {
			l, err := heirlock.TryAcquire(filepath.Join(dir, "x.lock"), heirlock.Options{Policy: heirlock.ReclaimStale})
			if errors.Is(err, heirlock.ErrHeld) {
				continue
			}
			if err == nil {
				var did string
				if did, err = section(dir); err == nil {
					err = l.Release()
				}
				out += did
			}
			if err != nil {
				fmt.Printf("violation in process %d: %v\n", os.Getpid(), err)
				return false
			}
		}
		fmt.Println(out)
		return true
	})
	return 0
}

// section is the work under the lock. It leaves a mark that only one process can make at a time (a symbolic link is as
// exclusive as O_CREAT|O_EXCL, and names its maker from its first instant), and draws the next number of a counter
// without any atomicity: two holders would draw the same number.
func section(dir string) (did string, err error) {
	mark, me := filepath.Join(dir, "mark"), strconv.Itoa(os.Getpid())
	if err = os.Symlink(me, mark); errors.Is(err, fs.ErrExist) {
		text, _ := os.Readlink(mark)
		pid, _ := strconv.Atoi(text)
		if !ended(pid) {
			return "", fmt.Errorf("two holders: the mark of process %s is there, and it runs", text)
		}
		did = " dead:" + text
		err = errors.Join(os.Remove(mark), os.Symlink(me, mark))
	}
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(filepath.Join(dir, "counter"), os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var number [8]byte
	if _, err := f.ReadAt(number[:], 0); err != nil {
		return "", err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(number[:])))
	if err != nil {
		return "", err
	}
	time.Sleep(rand.N(300 * time.Microsecond)) // room for a second holder
	copy(number[:], fmt.Sprintf("%8d", n+1))
	if _, err := f.WriteAt(number[:], 0); err != nil {
		return "", err
	}
	text, err := os.Readlink(mark)
	if err != nil || text != me {
		return "", fmt.Errorf("two holders: the mark became %q, %v", text, err)
	}
	return did + " " + strconv.Itoa(n+1), os.Remove(mark)
}

// derby is 32 racers and what they did.
type derby struct {
	*scene
	racers []*actor
	mu     sync.Mutex
	killed map[int]bool

	drawn                        map[string]bool
	kills, stops, inherited, won int
}

// 32 processes race for a stale lock beside a stale guard; some are stopped for a while, some are killed, anywhere.
//
//	round:   dead lock, dead guard ──┐
//	racer 1..32:   attempt ×3 ───────┼─ clear guard ─ guard ─ destroy ─ link ─ [mark, count, unmark] ─ release
//	chaos:                 SIGSTOP … SIGCONT here and there, SIGKILL of one, often of the one in the section
//	end:     the next taker gets the lock at once; after one Reclaim the directory is empty
func TestRaceOfManyForAStaleLock(t *testing.T) {
	for name, where := range map[string]func(testing.TB) string{"ext4": journalled, "tmpfs": shm} {
		t.Run(name, func(t *testing.T) {
			d := &derby{scene: newScene(t, where(t)), killed: map[int]bool{}, drawn: map[string]bool{}}
			if err := os.WriteFile(filepath.Join(d.dir, "counter"), []byte("       0"), 0o600); err != nil {
				t.Fatal(err)
			}
			for range 32 {
				d.racers = append(d.racers, play(t, nil, "racer", d.dir))
			}
			n := rounds(t, 150)
			start := time.Now()
			for i := range n {
				d.round(i)
				if t.Failed() {
					t.Fatalf("in round %d", i)
				}
			}
			t.Logf("%d rounds in %v: %d sections, %d stops, %d kills, %d of them in a section", n,
				time.Since(start).Round(time.Millisecond), d.won, d.stops, d.kills, d.inherited)
			if n >= 100 && (d.won < n || d.stops < n || d.kills < n/10 || d.inherited < n/50) {
				t.Errorf("the race did not take place")
			}
		})
	}
}

func (d *derby) round(i int) {
	leaveDead(d.t, d.path)
	leaveDead(d.t, d.guard())
	for _, r := range d.racers {
		r.say("go")
	}
	var chaos sync.WaitGroup
	for range 3 {
		d.stops++
		chaos.Go(stopAWhile(d.racers[rand.N(len(d.racers))].cmd.Process))
	}
	if i%2 == 0 {
		chaos.Go(d.killOne)
	}
	won, dead := 0, 0
	for _, r := range d.racers {
		won += d.settle(r)
	}
	chaos.Wait()
	for i, r := range d.racers {
		if d.killed[r.cmd.Process.Pid] {
			<-r.done
			dead++
			d.racers[i] = play(d.t, nil, "racer", d.dir)
		}
	}
	if won == 0 && dead == 0 {
		d.t.Errorf("nobody took the lock, and nobody was killed")
	}
	d.won += won
	d.kills += dead
	d.end()
}

// stopAWhile is half of the chaos: the times are the fault, nothing waits for them.
func stopAWhile(p *os.Process) func() {
	return func() {
		time.Sleep(rand.N(6 * time.Millisecond))
		p.Signal(syscall.SIGSTOP)
		time.Sleep(rand.N(6 * time.Millisecond))
		p.Signal(syscall.SIGCONT)
	}
}

// killOne kills a racer: the one in the section, if there is one at that moment.
func (d *derby) killOne() {
	time.Sleep(rand.N(8 * time.Millisecond))
	victim := d.racers[rand.N(len(d.racers))]
	mark, _ := os.Readlink(filepath.Join(d.dir, "mark"))
	for _, r := range d.racers {
		if strconv.Itoa(r.cmd.Process.Pid) == mark {
			victim = r
		}
	}
	d.mu.Lock()
	d.killed[victim.cmd.Process.Pid] = true
	d.mu.Unlock()
	victim.cmd.Process.Kill()
}

func (d *derby) wasKilled(pid int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.killed[pid]
}

// settle waits for one racer's answer and returns how many sections it went through.
func (d *derby) settle(r *actor) (won int) {
	d.t.Helper()
	var line string
	select {
	case line = <-r.lines:
	case <-time.After(time.Minute):
		d.t.Fatalf("wedged: process %d has not answered for a minute", r.cmd.Process.Pid)
	}
	words := strings.Fields(line)
	if len(words) == 0 && d.wasKilled(r.cmd.Process.Pid) {
		return 0
	}
	if len(words) == 0 || words[0] != "done" {
		d.t.Errorf("process %d: %q", r.cmd.Process.Pid, line)
		return 0
	}
	for _, word := range words[1:] {
		if pid, ok := strings.CutPrefix(word, "dead:"); ok {
			d.grave(pid)
			continue
		}
		if d.drawn[word] {
			d.t.Errorf("number %s was drawn twice", word)
		}
		d.drawn[word] = true
		won++
	}
	return won
}

// grave requires that the owner of a mark that was left is one that this test killed.
func (d *derby) grave(pid string) {
	d.t.Helper()
	if n, _ := strconv.Atoi(pid); !d.wasKilled(n) {
		d.t.Errorf("the lock of process %s was inherited, and nobody killed it", pid)
	}
	d.inherited++
}

// end requires that the round left no wedge and no file.
func (d *derby) end() {
	mark, counter := filepath.Join(d.dir, "mark"), filepath.Join(d.dir, "counter")
	if pid, err := os.Readlink(mark); err == nil {
		d.grave(pid)
		os.Remove(mark)
	}
	text, err := os.ReadFile(counter)
	if err != nil {
		d.t.Fatal(err)
	}
	drawn, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	if lost := drawn - len(d.drawn); lost < 0 || lost > 3*d.kills { // a killed racer reports none of its three
		d.t.Errorf("%d numbers drawn, %d reported, %d processes killed", drawn, len(d.drawn), d.kills)
	}
	os.Remove(counter)
	d.tidy()
	if err := os.WriteFile(counter, text, 0o600); err != nil {
		d.t.Fatal(err)
	}
}
