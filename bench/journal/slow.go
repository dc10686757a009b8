package main

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
	"time"

	"github.com/heirlock/heirlock/journal"
)

// slowReport is what a journal on a slow disk said about itself.
type slowReport struct {
	P50, P99 float64 // of Submit, in nanoseconds
	Most     int64   // bytes of heap above those before, at most
	Bounds   int64   // that were declared
	Status   journal.Status
}

const slowRole = "JOURNAL_SLOW"

func init() {
	if path := os.Getenv(slowRole); path != "" {
		report, err := submitSlowly(path)
		if err == nil {
			err = json.NewEncoder(os.Stdout).Encode(report)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// slow runs a journal whose every write takes 0.25 s: strace(1) holds the system call up, and no other. A batch of 256 KiB
// holds some 900 events, which a producer makes in less than a millisecond.
func slow(dir string, _ int) error {
	strace, err := exec.LookPath("strace")
	if err != nil {
		fmt.Println("slow    not run: there is no strace(1)")
		return nil
	}
	cmd := exec.Command(strace, "-f", "--seccomp-bpf", "-qq", "-o", os.DevNull, "-e", "trace=write", "-e", "inject=write:delay_enter=250000", "/proc/self/exe")
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd.Args[len(cmd.Args)-1] = self
	cmd.Env = append(os.Environ(), slowRole+"="+filepath.Join(dir, "log"))
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return err
	}
	var r slowReport
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	s := &r.Status
	fmt.Printf("slow    %d submits, p50 %.2f µs, p99 %.2f µs; accepted %d, refused for items %d and bytes %d, written %d; heap +%d KiB at most, bounds %d KiB\n",
		s.Received, r.P50/1e3, r.P99/1e3, s.Accepted, s.RefusalsByReason.ItemCapacity, s.RefusalsByReason.ByteCapacity, s.Written, r.Most>>10, r.Bounds>>10)
	if s.Refused == 0 || s.Refused != s.RefusalsByReason.ItemCapacity+s.RefusalsByReason.ByteCapacity || s.Received != s.Accepted+s.Refused || s.Accepted != s.Written {
		return fmt.Errorf("the counts do not add up: %s", text)
	}
	atMost("slow disk: p50 of Submit, µs", r.P50/1e3, 2)
	atMost("slow disk: heap above the bounds, MiB", float64(r.Most-r.Bounds)/(1<<20), 1)
	return nil
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
