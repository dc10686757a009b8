package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Goals: run at most 1.2 ×, exec at most 1.1 × the time of flock(1) with the same command plus an empty Go program,
// whole processes, in turn.
func BenchmarkWholeProcess(b *testing.B) {
	if _, err := exec.LookPath("flock"); err != nil {
		b.Skip("no flock(1)")
	}
	dir := b.TempDir()
	empty := filepath.Join(dir, "empty.go")
	if err := os.WriteFile(empty, []byte("package main\nfunc main() {}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	for out, source := range map[string]string{"empty": empty, "heirlock": "."} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, out), source)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := build.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, text)
		}
	}
	spent := func(argv ...string) time.Duration {
		start := time.Now()
		if err := exec.Command(argv[0], argv[1:]...).Run(); err != nil {
			b.Fatalf("%v: %v", argv, err)
		}
		return time.Since(start)
	}
	heirlock := filepath.Join(dir, "heirlock")
	for _, verb := range []string{"run", "exec"} {
		b.Run(verb, func(b *testing.B) {
			var ratios []float64
			var ours, theirs []time.Duration
			for b.Loop() {
				for i := range 20 {
					lock := filepath.Join(dir, fmt.Sprintf("%s-%d-%d.lock", verb, len(ratios), i)) // exec leaves its name behind
					us := spent(heirlock, verb, lock, "--", "true")
					them := spent("flock", filepath.Join(dir, "flock"), "true") + spent(filepath.Join(dir, "empty"))
					ours, theirs = append(ours, us), append(theirs, them)
					ratios = append(ratios, float64(us)/float64(them))
					os.Remove(lock)
				}
			}
			slices.Sort(ratios)
			slices.Sort(ours)
			slices.Sort(theirs)
			b.ReportMetric(ratios[len(ratios)/2], "×flock+empty")
			b.ReportMetric(float64(ours[len(ours)/2].Microseconds()), "µs/ours")
			b.ReportMetric(float64(theirs[len(theirs)/2].Microseconds()), "µs/theirs")
			b.ReportMetric(0, "ns/op")
		})
	}
}
