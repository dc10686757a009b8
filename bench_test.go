package heirlock

import (
	"path/filepath"
	"testing"
)

// Bare system calls are measured beside the library in internal/kernel's style: see bare_linux_test.go.

func BenchmarkUncontended(b *testing.B) {
	path := filepath.Join(b.TempDir(), "x.lock")
	b.ReportAllocs()
	for b.Loop() {
		l, err := TryAcquire(path, Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Release(); err != nil {
			b.Fatal(err)
		}
	}
}
