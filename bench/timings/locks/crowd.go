package locks

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/heirlock/heirlock/bench/timings/account"
)

const (
	crowdProcesses = 64
	crowdSections  = 200
)

// Member is the role that takes the lock a number of times, with 1 ms of work in each section, and prints its waits.
func Member(args []string) error {
	take := lockers[args[0]]
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	bufio.NewScanner(os.Stdin).Scan() // the start
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
	_, err = os.Stdout.WriteString(waits.String())
	return err
}

// Crowd is many processes that want one lock all the time. It runs once, whatever the rounds: it is long.
func Crowd(dir string, _ int) error {
	var lines []account.Line
	totals := map[string]float64{}
	for _, name := range names {
		waits, total, err := crowd(name, filepath.Join(dir, name+".lock"))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		totals[name] = total
		lines = append(lines, account.Line{Name: name, Took: waits})
	}
	title := fmt.Sprintf("wait of %d processes, %d times each, 1 ms of work", crowdProcesses, crowdSections)
	account.Latencies(title, "flock", lines)
	s := account.Section{
		Title:   fmt.Sprintf("%d processes, %d times each, 1 ms of work: the whole", crowdProcesses, crowdSections),
		Columns: []string{"", "total, s", "÷ flock", "longest wait ÷ median"},
	}
	for _, l := range lines {
		fair, ratio := l.Took.At(1)/l.Took.At(0.5), totals[l.Name]/totals["flock"]
		s.Rows = append(s.Rows, []string{l.Name, account.Figure(totals[l.Name]), fmt.Sprintf("%.2f", ratio), account.Figure(fair)})
		if l.Name == "heirlock" {
			account.Goal("crowd, total ÷ flock", ratio, "≤", 1.8)
			account.Goal("crowd, longest wait ÷ median", fair, "≤", 20)
		}
	}
	account.Show(s)
	return nil
}

// crowd returns the waits, and the seconds that all of it took.
func crowd(name, path string) (*account.Distribution, float64, error) {
	var members []*actor
	defer func() {
		for _, m := range members {
			m.stop()
		}
	}()
	for range crowdProcesses {
		m, err := start("member", name, path, strconv.Itoa(crowdSections))
		if err != nil {
			return nil, 0, err
		}
		members = append(members, m)
	}
	time.Sleep(time.Second)
	began := mono()
	for _, m := range members {
		if err := m.say("go"); err != nil {
			return nil, 0, err
		}
	}
	waits := &account.Distribution{}
	for _, m := range members {
		for range crowdSections {
			line, err := m.out.ReadString('\n')
			if err != nil {
				return nil, 0, err
			}
			wait, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
			if err != nil {
				return nil, 0, err
			}
			waits.Add(wait)
		}
	}
	return waits, float64(mono()-began) / 1e9, nil
}
