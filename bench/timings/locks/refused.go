package locks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"

	"github.com/heirlock/heirlock"
	"github.com/heirlock/heirlock/bench/timings/account"
)

// Refused is one attempt to take a lock that another process holds. heirlock says who that is, and on what evidence.
func Refused(dir string, rounds int) error {
	median, err := eachLocker(dir, "refused: another process holds the lock", "flock", []string{"flock", "gofrs", "heirlock", "bare"}, rounds,
		func(name, path string) ([]int64, error) {
			of := name
			if name == "bare" {
				of = "heirlock"
			}
			owner, err := holder(of, path, true)
			if err != nil {
				return nil, err
			}
			defer owner.stop()
			return timed(func() error { return attempts[name](path, owner.cmd.Process.Pid) })
		})
	if err == nil {
		account.Goal("refused with the whole diagnosis, median ÷ bare", account.Ratio(median, "heirlock", "bare"), "≤", 2)
	}
	return err
}

// timed is how long each of many calls takes.
func timed(do func() error) ([]int64, error) {
	took := make([]int64, 0, takes)
	for range takes {
		began := mono()
		err := do()
		took = append(took, mono()-began)
		if err != nil {
			return nil, err
		}
	}
	return took, nil
}

// attempts are refused, or fail.
var attempts = map[string]func(path string, owner int) error{
	"flock": func(path string, _ int) error {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != unix.EWOULDBLOCK {
			return fmt.Errorf("not refused: %v", err)
		}
		return f.Close()
	},
	"gofrs": func(path string, _ int) error {
		f := flock.New(path)
		if locked, err := f.TryLock(); locked || err != nil {
			return fmt.Errorf("not refused: %v", err)
		}
		return f.Close()
	},
	"heirlock": func(path string, owner int) error {
		_, err := heirlock.TryAcquire(path, heirlock.Options{Policy: heirlock.ReclaimStale})
		held, ok := errors.AsType[*heirlock.HeldError](err)
		if !ok || held.Diagnosis.State != "held" || held.Diagnosis.Owner.PID != int64(owner) {
			return fmt.Errorf("not refused as held by %d: %v", owner, err)
		}
		return nil
	},
	"bare": bareRefusal,
}

// bareRefusal asks the kernel what a refused attempt of heirlock asks about a live owner, and nothing else.
func bareRefusal(path string, owner int) error {
	var st unix.Stat_t
	var fs unix.Statfs_t
	buf, name := make([]byte, 1024), filepath.Base(path)
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	file, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(file)
	process, err := unix.PidfdOpen(owner, 0)
	if err != nil {
		return err
	}
	defer unix.Close(process)
	stat, err := unix.Open("/proc/"+strconv.Itoa(owner)+"/stat", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(stat)
	read := func(n int, err error) error { return err }
	poll := []unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}
	return errors.Join(
		unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW), unix.Fstat(file, &st), read(unix.Pread(file, buf, 0)), read(unix.Pread(file, buf, st.Size)),
		unix.Fstat(file, &st), unix.Fstatfs(file, &fs), unix.Fstat(process, &st), read(unix.Poll(poll, 0)),
		unix.Fstatfs(stat, &fs), read(unix.Read(stat, buf)), read(unix.Read(stat, buf)), read(unix.Poll(poll, 0)),
	)
}

// Ways are the calls that take a lock, nobody else there: none that can wait may cost more for it.
func Ways(dir string, rounds int) error {
	ways := map[string]func(path string) error{
		"TryAcquire": func(path string) error {
			l, err := heirlock.TryAcquire(path, heirlock.Options{})
			if err != nil {
				return err
			}
			return l.Release()
		},
		"Acquire": func(path string) error {
			l, err := heirlock.Acquire(context.Background(), path, heirlock.Options{})
			if err != nil {
				return err
			}
			return l.Release()
		},
		"Do": func(path string) error {
			return heirlock.Do(context.Background(), path, heirlock.Options{}, func(context.Context, *heirlock.Lock) error { return nil })
		},
	}
	median, err := eachLocker(dir, "the calls that take a lock, nobody else there", "TryAcquire", []string{"TryAcquire", "Acquire", "Do"}, rounds,
		func(name, path string) ([]int64, error) { return timed(func() error { return ways[name](path) }) })
	if err == nil {
		account.Goal("Acquire, median ÷ TryAcquire", account.Ratio(median, "Acquire", "TryAcquire"), "≤", 1.05)
		account.Goal("Do, median ÷ TryAcquire", account.Ratio(median, "Do", "TryAcquire"), "≤", 1.1)
	}
	return err
}
