package heirlock

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// disks are the filesystems that the goals name: ext4 with a journal (a loop mount, as root) and tmpfs.
func disks(b *testing.B, run func(b *testing.B, dir string)) {
	b.Run("ext4", func(b *testing.B) { run(b, loopExt4(b)) })
	b.Run("tmpfs", func(b *testing.B) {
		dir, err := os.MkdirTemp("/dev/shm", "heirlock-bench-")
		if err != nil {
			b.Skipf("no tmpfs: %v", err)
		}
		b.Cleanup(func() { os.RemoveAll(dir) })
		run(b, dir)
	})
}

// loopExt4 mounts a fresh ext4: the machine's own may have no journal, and then looks at every inode that was freed in
// the last minute before it takes another.
func loopExt4(b *testing.B) string {
	if os.Getuid() != 0 {
		b.Skip("a loop mount needs root")
	}
	image, dir := filepath.Join(b.TempDir(), "image"), b.TempDir()
	for _, argv := range [][]string{
		{"truncate", "-s", "256M", image}, {"mkfs.ext4", "-q", image}, {"mount", "-o", "loop", image, dir},
	} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			b.Skipf("%v: %v\n%s", argv, err, out)
		}
	}
	b.Cleanup(func() { exec.Command("umount", dir).Run() })
	return dir
}

// compare runs both sides in turn, in batches, and reports the median of the ratios of neighbours: whatever else the
// machine does then reaches both.
func compare(b *testing.B, ours, bare func()) {
	const batch = 50
	var ratios []float64
	var oursTotal, bareTotal time.Duration
	time1 := func(do func()) time.Duration {
		start := time.Now()
		for range batch {
			do()
		}
		return time.Since(start)
	}
	rounds := 0
	for b.Loop() {
		for range 10 {
			first, second := time1(ours), time1(bare)
			ratios = append(ratios, float64(first)/float64(second))
			oursTotal, bareTotal = oursTotal+first, bareTotal+second
			rounds++
		}
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "×bare")
	b.ReportMetric(float64(oursTotal.Nanoseconds())/float64(rounds*batch), "ns/ours")
	b.ReportMetric(float64(bareTotal.Nanoseconds())/float64(rounds*batch), "ns/bare")
	b.ReportMetric(testing.AllocsPerRun(100, ours), "allocs/ours")
	b.ReportMetric(0, "ns/op")
}

// Goal: at most 1.4 × on ext4, 1.6 × on tmpfs, 16 allocations.
func BenchmarkUncontended(b *testing.B) {
	disks(b, func(b *testing.B, dir string) {
		path := filepath.Join(dir, "x.lock")
		takeAndRelease(b, path)
		compare(b, func() {
			l, err := TryAcquire(path, Options{})
			if err == nil {
				err = l.Release()
			}
			if err != nil {
				b.Fatal(err)
			}
		}, func() { bareTakeAndRelease(b, dir, 480) })
	})
}

// bareTakeAndRelease is what TryAcquire and Release ask of the kernel, and nothing else.
func bareTakeAndRelease(b *testing.B, dir string, size int) {
	var st unix.Stat_t
	var fs unix.Statfs_t
	var content [1024]byte
	d, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(b, err)
	if err := unix.Fstatat(d, "x.lock", &st, unix.AT_SYMLINK_NOFOLLOW); err != unix.ENOENT {
		b.Fatal(err)
	}
	f, err := unix.Openat(d, ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	must(b, err)
	must(b, unix.Fstat(f, &st))
	must(b, unix.Fstatfs(f, &fs))
	must(b, unix.Flock(f, unix.LOCK_EX|unix.LOCK_NB))
	_, err = unix.Pwrite(f, content[:size], 0)
	must(b, err)
	must(b, unix.Linkat(f, "", d, "x.lock", unix.AT_EMPTY_PATH))
	must(b, unix.Fstatat(d, "x.lock", &st, unix.AT_SYMLINK_NOFOLLOW))
	must(b, unix.Fstatat(d, "x.lock", &st, unix.AT_SYMLINK_NOFOLLOW))
	must(b, unix.Unlinkat(d, "x.lock", 0))
	must(b, unix.Close(f))
	must(b, unix.Close(d))
}

// Goals: Acquire at most 1.05 ×, Do at most 1.10 × of TryAcquire and Release, which stand for bare here.
func BenchmarkWithoutContention(b *testing.B) {
	try := func(path string) error {
		l, err := TryAcquire(path, Options{})
		if err != nil {
			return err
		}
		return l.Release()
	}
	for name, do := range map[string]func(path string) error{
		"Acquire": func(path string) error {
			l, err := Acquire(context.Background(), path, Options{})
			if err != nil {
				return err
			}
			return l.Release()
		},
		"Do": func(path string) error {
			return Do(context.Background(), path, Options{}, func(context.Context, *Lock) error { return nil })
		},
	} {
		b.Run(name, func(b *testing.B) {
			disks(b, func(b *testing.B, dir string) {
				path := filepath.Join(dir, "x.lock")
				takeAndRelease(b, path)
				compare(b, func() { must(b, do(path)) }, func() { must(b, try(path)) })
			})
		})
	}
}

// Goal: at most 2 ×.
func BenchmarkRefused(b *testing.B) {
	disks(b, func(b *testing.B, dir string) {
		path := filepath.Join(dir, "x.lock")
		l, err := TryAcquire(path, Options{})
		must(b, err)
		defer l.Release()
		compare(b, func() {
			_, err := TryAcquire(path, Options{Policy: ReclaimStale})
			var held *HeldError
			if !errors.As(err, &held) || held.Diagnosis.State != stateHeld || held.Diagnosis.Identity != "matched" {
				b.Fatal(err)
			}
		}, func() { bareRefusal(b, dir) })
	})
}

// bareRefusal is what a refused TryAcquire asks of the kernel about a live owner, and nothing else.
func bareRefusal(b *testing.B, dir string) {
	var st unix.Stat_t
	var fs unix.Statfs_t
	var buf [1024]byte
	d, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(b, err)
	must(b, unix.Fstatat(d, "x.lock", &st, unix.AT_SYMLINK_NOFOLLOW))
	f, err := unix.Openat(d, "x.lock", unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	must(b, err)
	must(b, unix.Fstat(f, &st))
	_, err = unix.Pread(f, buf[:st.Size], 0)
	must(b, err)
	must(b, unix.Fstat(f, &st))
	must(b, unix.Fstatfs(f, &fs))
	pid := unix.Getpid()
	p, err := unix.PidfdOpen(pid, 0)
	must(b, err)
	must(b, unix.Fstat(p, &st))
	poll := []unix.PollFd{{Fd: int32(p), Events: unix.POLLIN}}
	_, err = unix.Poll(poll, 0)
	must(b, err)
	s, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	must(b, err)
	must(b, unix.Fstatfs(s, &fs))
	n, err := unix.Read(s, buf[:])
	must(b, err)
	if !bytes.Contains(buf[:n], []byte(")")) {
		b.Fatalf("%q", buf[:n])
	}
	_, err = unix.Read(s, buf[:])
	must(b, err)
	must(b, unix.Close(s))
	_, err = unix.Poll(poll, 0)
	must(b, err)
	must(b, unix.Close(p))
	must(b, unix.Close(f))
	must(b, unix.Close(d))
}

func must(b *testing.B, err error) {
	if err != nil {
		b.Helper()
		b.Fatal(err)
	}
}
