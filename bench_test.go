package heirlock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// The bare system calls that these are compared with are in bench_linux_test.go, in the same run.

func BenchmarkInspect10000(b *testing.B) {
	dir := b.TempDir()
	const n = 10_000
	paths := make([]string, n)
	first := filepath.Join(dir, "first.lock")
	l, err := TryAcquire(first, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Release()
	record, err := os.ReadFile(first)
	if err != nil {
		b.Fatal(err)
	}
	for i := range paths {
		paths[i] = filepath.Join(dir, fmt.Sprintf("%05d.lock", i))
		if err := os.WriteFile(paths[i], record, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for _, count := range []int{n / 10, n} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			diagnoses := make([]*Diagnosis, count)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for b.Loop() {
				for i, path := range paths[:count] {
					if diagnoses[i], err = Inspect(path, Options{}); err != nil || diagnoses[i].State != stateHeld {
						b.Fatalf("%s: %+v, %v", path, diagnoses[i], err)
					}
				}
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*count), "ns/lock")
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(count), "retained-B/lock")
			runtime.KeepAlive(diagnoses)
		})
	}
}

func takeAndRelease(b *testing.B, path string) {
	l, err := TryAcquire(path, Options{})
	if err == nil {
		err = l.Release()
	}
	if err != nil {
		b.Fatal(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		b.Fatalf("%s after release: %v", path, err)
	}
}
