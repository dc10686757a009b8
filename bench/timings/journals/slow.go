package journals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/heirlock/heirlock/bench/timings/account"
	"github.com/heirlock/heirlock/bench/timings/role"
	"github.com/heirlock/heirlock/journal"
)

// slowReport is what a journal on a slow disk said about itself.
type slowReport struct {
	P50, P99 float64 // of Submit, in nanoseconds
	Most     int64   // bytes of heap above those before, at most
	Bounds   int64   // that were declared
	Status   journal.Status
}

const (
	slowMedian = "slow disk: median of Submit, µs"
	slowHeap   = "slow disk: heap above the bounds, MiB"
)

// Slow runs a journal whose every write takes 0.25 s: strace(1) holds the system call up, and no other. A batch of 256 KiB
// holds some 900 events, which a producer makes in less than a millisecond.
func Slow(dir string, _ int) error {
	strace, err := exec.LookPath("strace")
	if err != nil {
		account.NotMeasured(slowMedian, "strace is not installed")
		account.NotMeasured(slowHeap, "strace is not installed")
		return nil
	}
	cmd, err := role.Command("slow", []string{filepath.Join(dir, "log")},
		strace, "-f", "--seccomp-bpf", "-qq", "-o", os.DevNull, "-e", "trace=write", "-e", "inject=write:delay_enter=250000")
	if err != nil {
		return err
	}
	text, err := cmd.Output()
	if err != nil {
		return err
	}
	var r slowReport
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	s := &r.Status
	if s.Refused == 0 || s.Refused != s.RefusalsByReason.ItemCapacity+s.RefusalsByReason.ByteCapacity || s.Received != s.Accepted+s.Refused || s.Accepted != s.Written {
		return fmt.Errorf("the counts do not add up: %s", text)
	}
	kib := func(bytes int64) string { return strconv.FormatInt(bytes>>10, 10) + " KiB" }
	account.Show(account.Section{
		Title:   "heirlock on a disk that takes 0.25 s for each write",
		Columns: []string{"", ""},
		Rows: [][]string{
			{"Submit, median", account.Figure(r.P50/1e3) + " µs"},
			{"Submit, p99", account.Figure(r.P99/1e3) + " µs"},
			{"submitted", fmt.Sprint(s.Received)},
			{"accepted, and written", fmt.Sprint(s.Written)},
			{"refused for want of room: items", fmt.Sprint(s.RefusalsByReason.ItemCapacity)},
			{"refused for want of room: bytes", fmt.Sprint(s.RefusalsByReason.ByteCapacity)},
			{"heap at most, beyond that before", kib(r.Most)},
			{"declared bounds", kib(r.Bounds)},
		},
	})
	account.Goal(slowMedian, r.P50/1e3, "<", 2)
	account.Goal(slowHeap, float64(r.Most-r.Bounds)/(1<<20), "≤", 1)
	return nil
}

// SubmitSlowly is the role of the process whose writes are held up.
func SubmitSlowly(args []string) error {
	report, err := submitSlowly(args[0])
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}

func submitSlowly(path string) (slowReport, error) {
	bounds := journal.Options[event]{MaxEventBytes: 4 << 10, MaxPendingItems: 8192, MaxPendingBytes: 2 << 20, MaxFileBytes: 64 << 20, MaxFiles: 2}
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	j, err := journal.Open(path, bounds)
	if err != nil {
		return slowReport{}, err
	}
	e, lat, r := newEvent(0), make([]int64, 0, 400_000), slowReport{Bounds: bounds.MaxPendingBytes + int64(bounds.MaxEventBytes)}
	own := int64(cap(lat) * 8)
	for until := time.Now().Add(3 * time.Second); time.Now().Before(until) && len(lat) < cap(lat); {
		for range 1000 {
			if len(lat) == cap(lat) {
				break
			}
			began := time.Now()
			_, err := j.Submit(e)
			lat = append(lat, int64(time.Since(began)))
			if err != nil && !errors.Is(err, journal.ErrItemCapacity) && !errors.Is(err, journal.ErrByteCapacity) {
				return r, err
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&now)
		r.Most = max(r.Most, int64(now.HeapAlloc)-int64(before.HeapAlloc)-own)
	}
	if err := j.Close(context.Background()); err != nil {
		return r, err
	}
	slices.Sort(lat)
	r.P50, r.P99, r.Status = float64(lat[len(lat)/2]), float64(lat[len(lat)*99/100]), j.Status()
	return r, nil
}
