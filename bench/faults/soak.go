package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The soak: on each filesystem a few locks, at each lock a few processes that take it, write a journal under it and give
// it back, in this namespace, in containers and under heirlock run, while they are killed and stopped at random.

const (
	locksEach   = 2
	workersEach = 3
)

// field is one lock with its journal.
type field struct {
	filesystem string
	dir        string
	*account
}

func (f *field) lock() string    { return filepath.Join(f.dir, "lk") }
func (f *field) journal() string { return filepath.Join(f.dir, "events.jsonl") }

func soak(base, self, cli string, length time.Duration) int {
	total := newAccount()
	var fields []*field
	for _, fs := range filesystems {
		at, undo, err := fs.mount(base)
		if err != nil {
			fmt.Printf("not to be had: %s: %s\n", fs.name, shorten(err.Error(), 200))
			continue
		}
		defer undo()
		for i := range locksEach {
			f := &field{fs.name, filepath.Join(at, fmt.Sprint("field", i)), newAccount()}
			if err := os.Mkdir(f.dir, 0o755); err != nil {
				fmt.Println(err)
				return 2
			}
			fields = append(fields, f)
		}
	}
	if len(fields) == 0 {
		fmt.Println("verdict: nothing was run: no filesystem was to be had")
		return 2
	}
	end := time.Now().Add(length)
	var farm sync.WaitGroup
	for _, f := range fields {
		for range workersEach {
			farm.Go(func() { f.work(self, cli, end) })
		}
	}
	farm.Go(func() { report(fields, end) })
	farm.Wait()
	for _, f := range fields {
		f.settle()
		f.print(f.filesystem + " " + filepath.Base(f.dir))
		total.add(f.account)
	}
	return total.verdict(length)
}

// report says from time to time how far it is.
func report(fields []*field, end time.Time) {
	for left := time.Until(end); left > 0; left = time.Until(end) {
		time.Sleep(min(left, 30*time.Second))
		sum := newAccount()
		for _, f := range fields {
			sum.add(f.account)
		}
		fmt.Printf("%8s left: %s\n", max(0, time.Until(end)).Round(time.Second), sum)
	}
}

// work keeps one process at the lock until the end.
func (f *field) work(self, cli string, end time.Time) {
	for time.Now().Before(end) {
		var err error
		switch rand.N(4) {
		case 0:
			f.count("containers started")
			err = f.life(end, false, "unshare", "--pid", "--fork", "--mount-proc", "--kill-child", self, ":farmer", f.dir)
		case 1:
			err = f.life(end, rand.N(2) == 0, cli, "run", "-v", "--policy", "reclaim-released", "-w", "30", f.lock(), "--", self, ":farmhand", f.dir)
		default:
			err = f.life(end, false, self, ":farmer", f.dir)
		}
		if err != nil {
			f.fail(err)
		}
	}
}

// life is one process from its start to its end: most are killed, some with only the wrapper, some after they have stood
// still for a while.
func (f *field) life(end time.Time, wrapperOnly bool, argv ...string) error {
	c, err := start(argv, nil)
	if err != nil {
		return err
	}
	heard := make(chan struct{})
	go func() {
		for line := range c.lines {
			f.hear(line)
		}
		close(heard)
	}()
	pause := func(most time.Duration) bool { // false if the process ended by itself
		select {
		case <-heard:
			return false
		case <-time.After(min(rand.N(most), time.Until(end))):
			return true
		}
	}
	going := pause(3 * time.Second)
	if going && rand.N(3) == 0 {
		f.count("stops")
		c.signal(syscall.SIGSTOP)
		going = pause(800 * time.Millisecond)
		c.signal(syscall.SIGCONT)
		going = going && pause(500*time.Millisecond)
	}
	switch {
	case going && wrapperOnly:
		f.count("kills of a wrapper alone")
		_ = c.cmd.Process.Kill()
	case going:
		f.count("kills")
		c.signal(syscall.SIGKILL)
	}
	c.in.Close()
	c.reap()
	<-heard // the command of a killed wrapper comes to its own end
	return nil
}

// filesystem is one to run on.
type filesystem struct {
	name  string
	mount func(base string) (dir string, undo func(), err error)
}

var filesystems = []filesystem{
	{"ext4", loop("ext4", "mkfs.ext4", "-q", "-F")},
	{"xfs", loop("xfs", "mkfs.xfs", "-q", "-f")},
	{"btrfs", loop("btrfs", "mkfs.btrfs", "-q", "-f")},
	{"tmpfs", func(base string) (string, func(), error) {
		return mountedAt(base, "tmpfs", "-t", "tmpfs", "-o", "size=1g", "tmpfs")
	}},
	{"overlay", func(base string) (string, func(), error) {
		options := "lowerdir=" + base + "/lower,upperdir=" + base + "/upper,workdir=" + base + "/work"
		for _, name := range []string{"lower", "upper", "work"} {
			if err := os.Mkdir(filepath.Join(base, name), 0o755); err != nil {
				return "", nil, err
			}
		}
		return mountedAt(base, "overlay", "-t", "overlay", "-o", options, "overlay")
	}},
}

// loop makes a filesystem in a sparse file.
func loop(name string, mkfs ...string) func(string) (string, func(), error) {
	return func(base string) (string, func(), error) {
		if err := havePrograms(mkfs[0]); err != nil {
			return "", nil, err
		}
		image := filepath.Join(base, name+".img")
		if err := os.WriteFile(image, nil, 0o600); err != nil {
			return "", nil, err
		}
		if err := os.Truncate(image, 1<<30); err != nil {
			return "", nil, err
		}
		if err := shellIn(strings.Join(append(mkfs, image), " ")); err != nil {
			return "", nil, err
		}
		return mountedAt(base, name, "-o", "loop", image)
	}
}

func mountedAt(base, name string, args ...string) (string, func(), error) {
	s := &stage{dir: base}
	at, err := s.mount("at-"+name, args...)
	return at, s.close, err
}
