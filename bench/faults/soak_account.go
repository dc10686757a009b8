package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heirlock/heirlock"
	"github.com/heirlock/heirlock/journal"
)

// account is what happened at one lock, as its workers said it while they lived.
type account struct {
	mu        sync.Mutex
	counts    map[string]int
	epochs    []string          // of the journal, in the order in which they were opened
	confirmed map[string]uint64 // by epoch, the last sequence that a Flush or Sync confirmed
	lost      []string
	errors    []string
}

func newAccount() *account {
	return &account{counts: map[string]int{}, confirmed: map[string]uint64{}}
}

func (a *account) count(what string) { a.countN(what, 1) }

func (a *account) countN(what string, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts[what] += n
}

func (a *account) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.errors = append(a.errors, err.Error())
}

// hear takes down one line of a worker.
func (a *account) hear(line string) {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "A":
		a.count("acquisitions")
		if rest != "free" {
			a.count("acquisitions: " + rest)
		}
	case "J":
		epoch, evidence, _ := strings.Cut(rest, " ")
		a.mu.Lock()
		a.epochs = append(a.epochs, epoch)
		a.mu.Unlock()
		a.count("journals opened")
		if evidence != "free" {
			a.count("journals inherited: " + evidence)
		}
	case "F":
		a.confirm(rest)
	case "R":
		a.count("releases")
	case "W":
		a.count("waits of 30 s that ended in a refusal")
	case "H":
		a.count("journals refused for a moment")
	case "T":
		a.count("two holders")
	case "E":
		a.fail(fmt.Errorf("%s", rest))
	default:
		a.ofRun(line)
	}
}

// ofRun counts on what evidence heirlock run -v says that it took the lock.
func (a *account) ofRun(line string) {
	for _, identity := range []string{"pid-gone", "reused-pid", "different-boot", "unavailable"} {
		if strings.Contains(line, "inherited") && strings.Contains(line, identity) {
			a.count("acquisitions by heirlock run on evidence: " + strings.Replace(identity, "unavailable", "witness released", 1))
			return
		}
	}
	if strings.Contains(line, "not taken") {
		a.count("waits of 30 s that ended in a refusal")
	}
}

func (a *account) confirm(rest string) {
	var epoch string
	var last uint64
	if _, err := fmt.Sscan(rest, &epoch, &last); err != nil {
		return // cut off by the end of its process
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts["frames confirmed"] += int(last - a.confirmed[epoch])
	a.confirmed[epoch] = last
}

// settle takes each lock once more after everybody is dead, and looks for what was confirmed.
func (f *field) settle() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	l, err := heirlock.Acquire(ctx, f.lock(), farmOptions)
	if err != nil {
		f.count("wedges")
		f.fail(fmt.Errorf("after the end: %w", err))
		return
	}
	defer l.Release()
	m, err := openMark(f.dir)
	if err != nil || m.set(unix.F_WRLCK) != nil {
		f.count("two holders")
	}
	defer unix.Close(m.fd)
	j, err := openJournal(f.dir)
	if err != nil {
		f.count("wedges")
		f.fail(fmt.Errorf("after the end, the journal: %w", err))
		return
	}
	if err := j.Close(ctx); err != nil {
		f.fail(err)
	}
	f.compare(ctx)
	f.leftovers()
}

// compare reads the journal and misses what was confirmed and is in no retained file.
func (f *field) compare(ctx context.Context) {
	seen, first := map[string]uint64{}, ""
	missing := map[string]bool{}
	for r, err := range journal.Read(ctx, []string{f.journal()}, journal.ReadOptions[event]{Generations: true}) {
		switch {
		case err != nil:
			f.fail(err)
		case r.Anomaly != nil:
			f.count("anomalies: " + string(r.Anomaly.Reason))
		case r.Gap != nil:
			missing[r.Gap.Epoch] = true
		default:
			if first == "" {
				first = r.Epoch
			}
			f.counts["frames read"]++
			seen[r.Epoch] = max(seen[r.Epoch], r.Sequence)
		}
	}
	from := 0
	if !isMissing(f.journal() + ".63") { // all generations are there: what was opened before the first has been rotated away
		from = max(0, slices.Index(f.epochs, first))
	}
	f.counts["epochs rotated away"] += from
	for _, epoch := range f.epochs[from:] {
		if want := f.confirmed[epoch]; seen[epoch] < want || missing[epoch] {
			f.counts["frames lost"] += int(want - min(want, seen[epoch]))
			f.lost = append(f.lost, fmt.Sprintf("%s: confirmed %d, found %d, gap %v", epoch, want, seen[epoch], missing[epoch]))
		}
	}
}

// leftovers are files that nobody would ever remove.
func (f *field) leftovers() {
	names, _ := os.ReadDir(f.dir)
	for _, e := range names {
		n := e.Name()
		if n != "lk" && n != "mark" && !strings.HasPrefix(n, "events.jsonl") {
			f.count("files left: " + strings.TrimRight(filepath.Base(n), "0123456789abcdef-"))
		}
	}
}

func (a *account) add(b *account) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for what, n := range b.counts {
		a.counts[what] += n
	}
	a.lost = append(a.lost, b.lost...)
	a.errors = append(a.errors, b.errors...)
}

func (a *account) String() string {
	var parts []string
	for _, what := range []string{"acquisitions", "kills", "stops", "frames confirmed", "two holders"} {
		parts = append(parts, fmt.Sprintf("%d %s", a.counts[what], what))
	}
	return strings.Join(parts, ", ") + fmt.Sprintf(", %d errors", len(a.errors))
}

func (a *account) print(title string) {
	fmt.Println(title)
	for _, what := range slices.Sorted(maps.Keys(a.counts)) {
		fmt.Printf("  %8d  %s\n", a.counts[what], what)
	}
	for _, l := range a.lost {
		fmt.Println("  LOST", l)
	}
	for i, e := range a.errors {
		if i == 10 {
			fmt.Printf("  and %d more errors\n", len(a.errors)-i)
			break
		}
		fmt.Println("  ERROR", shorten(e, 400))
	}
}

func (a *account) verdict(length time.Duration) int {
	a.print("all, after " + length.String())
	c := a.counts
	s := fmt.Sprintf("%d acquisitions, %d kills, %d two-holder events, %d wedges, %d frames confirmed, %d lost, %d errors", c["acquisitions"],
		c["kills"]+c["kills of a wrapper alone"], c["two holders"], c["wedges"], c["frames confirmed"], c["frames lost"], len(a.errors))
	if c["two holders"]+c["wedges"]+c["frames lost"]+len(a.errors)+len(a.lost) > 0 || c["acquisitions"] == 0 {
		fmt.Println("verdict: FAILED:", s)
		return 1
	}
	fmt.Println("verdict: ok:", s)
	return 0
}
