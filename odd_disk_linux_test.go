package heirlock_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heirlock/heirlock"
)

func init() {
	roles["outsider"] = outsider
	roles["starved"] = starved
}

// fails requires that an attempt on a free name fails with this error, is no refusal, and leaves what was there.
func (s *scene) fails(want syscall.Errno, left ...string) {
	s.t.Helper()
	for _, opts := range []heirlock.Options{{}, {Policy: heirlock.ReclaimStale, Durable: true}} {
		l, err := heirlock.TryAcquire(s.path, opts)
		var path *fs.PathError
		if l != nil || !errors.Is(err, want) || errors.Is(err, heirlock.ErrHeld) || !errors.As(err, &path) {
			s.t.Errorf("%+v, %v; want a *fs.PathError with %v", l, err, want)
		}
		s.only(left...)
	}
}

// held requires that a lock which is held here is reported as held, whatever its filesystem has no room for.
func (s *scene) held(path string) {
	s.t.Helper()
	_, err := heirlock.TryAcquire(path, heirlock.Options{Policy: heirlock.ReclaimStale})
	var refused *heirlock.HeldError
	if !errors.As(err, &refused) || refused.Diagnosis.State != "held" || refused.Diagnosis.Identity != "matched" {
		s.t.Errorf("a held lock: %v; want a refusal that says so", err)
	}
	if d, err := heirlock.Inspect(path, heirlock.Options{}); err != nil || d.State != "held" || d.Witness != "held" {
		s.t.Errorf("inspect of a held lock: %+v, %v", d, err)
	}
}

// fill takes all the room, then every last byte.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err = f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
	f.Sync()
}

// A full disk: nothing is taken and nothing is left, a held lock is still held and can be given back, and a dead one keeps its
// evidence until there is room.
func TestOddFullDisk(t *testing.T) {
	for name, where := range map[string]func(*testing.T) string{
		"ext4":  func(t *testing.T) string { return loopExt4(t, 8<<20, nil, "-b", "1024") },
		"tmpfs": func(t *testing.T) string { return mounted(t, "-t", "tmpfs", "-o", "size=1m", "tmpfs") },
	} {
		t.Run(name, func(t *testing.T) {
			at := where(t)
			s := &scene{t, at, filepath.Join(at, "x.lock")}
			other := filepath.Join(at, "y.lock")
			l, err := heirlock.TryAcquire(other, heirlock.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ballast := filepath.Join(at, "ballast")
			fill(t, ballast)
			s.fails(syscall.ENOSPC, "ballast", "y.lock")
			s.held(other)
			if err := l.Release(); err != nil {
				t.Error(err)
			}
			os.Remove(ballast)
			leaveDead(t, s.path)
			fill(t, ballast)
			if l, err := heirlock.TryAcquire(s.path, heirlock.Options{Policy: heirlock.ReclaimStale}); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), s.guard()+":") {
				t.Errorf("a dead lock on a full disk: %v, %v; want ENOSPC, and the guard's name", l, err)
			}
			s.only("ballast", "x.lock")
			os.Remove(ballast)
			s.tidy()
		})
	}
}

func TestOddNoInodes(t *testing.T) {
	at := mounted(t, "-t", "tmpfs", "-o", "size=1m,nr_inodes=8", "tmpfs")
	s := &scene{t, at, filepath.Join(at, "x.lock")}
	other := filepath.Join(at, "y.lock")
	l, err := heirlock.TryAcquire(other, heirlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; err == nil; i++ {
		err = os.WriteFile(filepath.Join(at, fmt.Sprint(i)), nil, 0o600)
	}
	s.fails(syscall.ENOSPC, s.names()...)
	s.held(other)
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

// Mounted read-only: the error says so, and what lies there is still judged.
func TestOddReadOnlyMount(t *testing.T) {
	source := t.TempDir()
	owner := play(t, nil, "hold", filepath.Join(source, "y.lock"), "refuse")
	owner.expect("held")
	leaveDead(t, filepath.Join(source, "z.lock"))
	at := mounted(t, "--bind", source)
	if out, err := exec.Command("mount", "-o", "remount,bind,ro", at).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v: %s", err, out)
	}
	s := &scene{t, at, filepath.Join(at, "x.lock")}
	s.fails(syscall.EROFS, "y.lock", "z.lock")
	s.held(filepath.Join(at, "y.lock"))
	s.path = filepath.Join(at, "z.lock")
	if d, err := heirlock.Inspect(s.path, heirlock.Options{}); err != nil || d.State != "stale" || d.Witness != "released" {
		t.Errorf("inspect: %+v, %v; want stale", d, err)
	}
	if l, err := heirlock.TryAcquire(s.path, heirlock.Options{Policy: heirlock.ReclaimStale}); !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), s.guard()+":") {
		t.Errorf("%v, %v; want EROFS, and the guard's name", l, err)
	}
	if d, err := heirlock.Reclaim(s.path, "", heirlock.Options{}); !errors.Is(err, syscall.EROFS) {
		t.Errorf("%v, %v; want EROFS", d, err)
	}
	s.only("y.lock", "z.lock")
	owner.kill()
}

func TestOddDirectoryThatIsNone(t *testing.T) {
	s := newScene(t, t.TempDir())
	file, dead := filepath.Join(s.dir, "file"), filepath.Join(s.dir, "dead")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink("loop", filepath.Join(s.dir, "loop")), os.Symlink("nothing", dead)); err != nil {
		t.Fatal(err)
	}
	for parent, want := range map[string]syscall.Errno{
		"missing": syscall.ENOENT, "file": syscall.ENOTDIR, "loop": syscall.ELOOP, "dead": syscall.ENOENT, "missing/deeper": syscall.ENOENT,
	} {
		s.path = filepath.Join(s.dir, parent, "x.lock")
		s.fails(want, "dead", "file", "loop")
		if d, err := heirlock.Inspect(s.path, heirlock.Options{}); !errors.Is(err, want) {
			t.Errorf("inspect under %s: %+v, %v; want %v", parent, d, err, want)
		}
	}
}

// A directory that is removed while its lock is held: the release says that the lock was lost, and the next call that there is
// no directory.
func TestOddDirectoryRemovedUnderALock(t *testing.T) {
	s := newScene(t, t.TempDir())
	l, err := heirlock.TryAcquire(s.path, heirlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	os.RemoveAll(s.dir)
	if err := l.Release(); !errors.Is(err, heirlock.ErrLost) {
		t.Errorf("%v, want ErrLost", err)
	}
	if l, err := heirlock.TryAcquire(s.path, heirlock.Options{}); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, heirlock.ErrHeld) {
		t.Errorf("%v, %v; want fs.ErrNotExist", l, err)
	}
}

// outsider tries for args as the user 65534.
func outsider(args []string) int {
	if err := errors.Join(unix.Setgroups(nil), syscall.Setgid(65534), syscall.Setuid(65534)); err != nil {
		fmt.Println("error", err)
		return 1
	}
	for _, path := range args {
		_, err := heirlock.TryAcquire(path, heirlock.Options{Policy: heirlock.ReclaimReleased})
		fmt.Printf("answer permission=%v held=%v %v\n", errors.Is(err, fs.ErrPermission), errors.Is(err, heirlock.ErrHeld), err)
	}
	return 0
}

// Without permission: in a directory that may not be written, or not be entered, the error says so and nothing is left; a lock
// that may not be read is refused, not taken for anything.
func TestOddNoPermission(t *testing.T) {
	needs(t)
	base, err := os.MkdirTemp("", "odd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	writable, readable, closed := filepath.Join(base, "writable"), filepath.Join(base, "readable"), filepath.Join(base, "closed")
	for dir, mode := range map[string]os.FileMode{base: 0o755, writable: 0o777, readable: 0o755, closed: 0o700} {
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, mode)); err != nil {
			t.Fatal(err)
		}
	}
	leaveDead(t, filepath.Join(writable, "secret.lock"))
	leaveDead(t, filepath.Join(readable, "secret.lock"))
	a := play(t, nil, "outsider", filepath.Join(readable, "x.lock"), filepath.Join(closed, "x.lock"),
		filepath.Join(writable, "secret.lock"), filepath.Join(readable, "secret.lock"))
	for range 2 {
		a.expect("answer permission=true held=false")
	}
	for range 2 {
		a.expect("answer permission=false held=true")
	}
	a.wait()
	for dir, names := range map[string][]string{writable: {"secret.lock"}, readable: {"secret.lock"}, closed: nil} {
		(&scene{t: t, dir: dir}).only(names...)
	}
}

// starved tries for the lock with three descriptors, then with one more, and so on, until it gets it.
func starved(args []string) int {
	if l, err := heirlock.TryAcquire(args[0]+".first", heirlock.Options{}); err != nil || l.Release() != nil {
		return 1 // the process measures itself once, and the runtime opens what it needs
	}
	for n := uint64(3); ; n++ {
		unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: 64})
		l, err := heirlock.TryAcquire(args[0], heirlock.Options{Policy: heirlock.Policy(args[1])})
		if err == nil {
			fmt.Println("held", l.Release())
			return 0
		}
		fmt.Printf("starved emfile=%v %v\n", errors.Is(err, syscall.EMFILE), err)
		if n > 63 {
			return 1
		}
		fmt.Scanln() // the other side looks at the directory first
	}
}

// Too many open files: the error says so each time, until there are enough, and nothing is left.
func TestOddTooManyOpenFiles(t *testing.T) {
	s := newScene(t, t.TempDir())
	a := play(t, nil, "starved", s.path, "refuse")
	for starved := 0; ; starved++ {
		if last := <-a.lines; !strings.HasPrefix(last, "starved emfile=true") {
			if last != "held <nil>" || starved < 2 { // the directory, the file
				t.Errorf("after %d attempts without descriptors: %q", starved, last)
			}
			break
		}
		s.only()
		a.say("")
	}
	a.wait()
	s.only()
}
