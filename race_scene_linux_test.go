package heirlock_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heirlock/heirlock"
)

// scene is a directory of its own with one lock path in it. What lies there at the end is part of every assertion.
type scene struct {
	t    testing.TB
	dir  string
	path string
}

func newScene(t testing.TB, parent string) *scene {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "scene-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return &scene{t: t, dir: dir, path: filepath.Join(dir, "x.lock")}
}

func (s *scene) guard() string { return s.path + ".reclaim" }

// names lists the directory.
func (s *scene) names() []string {
	s.t.Helper()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// only requires that exactly these names are there, in order.
func (s *scene) only(names ...string) {
	s.t.Helper()
	if got := s.names(); !slices.Equal(got, names) {
		s.t.Errorf("the directory holds %q, want %q", got, names)
	}
}

// tidy takes the lock as the next one would, gives it back, tidies once, and requires an empty directory.
func (s *scene) tidy() {
	s.t.Helper()
	l, err := heirlock.TryAcquire(s.path, heirlock.Options{Policy: heirlock.ReclaimStale})
	if err != nil {
		s.t.Errorf("the next taker: %v", err)
		return
	}
	if err := l.Release(); err != nil {
		s.t.Errorf("its release: %v", err)
	}
	if d, err := heirlock.Reclaim(s.path, "", heirlock.Options{}); err != nil || d.State != "free" {
		s.t.Errorf("the last reclaim: %+v, %v; want free", d, err)
	}
	s.only()
}

var (
	deadOnce   sync.Once
	deadRecord []byte
	fileField  = regexp.MustCompile(`"file":\{[^}]*\}`)
)

// record is what a process wrote that held a lock and was killed.
func record(t testing.TB) []byte {
	t.Helper()
	deadOnce.Do(func() {
		path := filepath.Join(t.TempDir(), "dead.lock")
		owner := play(t, nil, "hold", path, "refuse")
		owner.expect("held")
		owner.kill()
		deadRecord, _ = os.ReadFile(path)
	})
	if len(deadRecord) == 0 {
		t.Fatal("no record of a dead process was made")
	}
	return deadRecord
}

// leaveDead puts the file of a killed owner at a path, as its kernel would have left it: the record names the file's own
// inode, and nobody holds its flock. It gets its name whole.
func leaveDead(t testing.TB, path string) {
	t.Helper()
	temporary := filepath.Join(filepath.Dir(path), "staging")
	f, err := os.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var st unix.Stat_t
	var fst unix.Statfs_t
	if err := errors.Join(unix.Fstat(int(f.Fd()), &st), unix.Fstatfs(int(f.Fd()), &fst)); err != nil {
		t.Fatal(err)
	}
	file := fmt.Sprintf(`"file":{"fs":"%x","dev":"%d","ino":"%d"}`, uint32(fst.Type), st.Dev, st.Ino)
	if _, err := f.Write(fileField.ReplaceAll(record(t), []byte(file))); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temporary, path); err != nil {
		t.Fatal(err)
	}
}

func inode(t testing.TB, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatalf("lstat %s: %v", path, err)
	}
	return st.Ino
}

// needs skips where the test cannot run, with the reason.
func needs(t testing.TB, programs ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("needs %s: %v", p, err)
		}
	}
}

// sweeping skips a test of hundreds of processes under strace where it cannot run, and in a race build: there each process takes
// half a second to begin, and works on one thread.
func sweeping(t testing.TB, programs ...string) {
	t.Helper()
	needs(t, append(programs, "strace")...)
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("a race build")
	}
}

// mounted mounts something for the time of the test and returns where.
func mounted(t testing.TB, args ...string) string {
	t.Helper()
	needs(t, "mount", "umount")
	at := t.TempDir()
	if out, err := exec.Command("mount", append(args, at)...).CombinedOutput(); err != nil {
		t.Skipf("mount %q: %v: %s", args, err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
			unix.Unmount(at, unix.MNT_DETACH)
		}
	})
	return at
}

// journalled mounts an ext4 with a journal. Such a filesystem hands a freed inode number to the next file at once; one
// without a journal waits for some seconds (ext4's recently_deleted), and hides what these tests are after.
func journalled(t testing.TB) string {
	t.Helper()
	at := loopExt4(t, 64<<20, nil, "-J", "size=4")
	path := filepath.Join(at, "once")
	var inodes [2]uint64
	for i := range inodes {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		inodes[i] = inode(t, path)
		os.Remove(path)
	}
	if inodes[0] != inodes[1] {
		t.Fatalf("the freed inode number %d was not handed out at once, but %d", inodes[0], inodes[1])
	}
	return at
}

func loopExt4(t testing.TB, size int64, mountArgs []string, mkfs ...string) string {
	t.Helper()
	needs(t, "mkfs.ext4")
	image := filepath.Join(t.TempDir(), "image")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, size)); err != nil {
		t.Fatal(err)
	}
	args := append(append([]string{"-q", "-F", "-m", "0", "-E", "lazy_itable_init=0"}, mkfs...), image)
	if out, err := exec.Command("mkfs.ext4", args...).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.ext4: %v: %s", err, out)
	}
	at := mounted(t, append([]string{"-o", "loop", image}, mountArgs...)...)
	os.Remove(filepath.Join(at, "lost+found"))
	return at
}

// shm is a directory on tmpfs.
func shm(t testing.TB) string {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &st); err != nil || st.Type != unix.TMPFS_MAGIC {
		t.Skipf("/dev/shm is no tmpfs (%v)", err)
	}
	dir, err := os.MkdirTemp("/dev/shm", "heirlock-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// ended reports whether a process number is free, or names a process all of which has exited.
func ended(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return true
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return err == nil && strings.HasPrefix(rest, "Z")
}

// rounds is how often the long races run: HEIRLOCK_ROUNDS, or fewer under -short.
func rounds(t testing.TB, usual int) int {
	t.Helper()
	if text := os.Getenv("HEIRLOCK_ROUNDS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("HEIRLOCK_ROUNDS=%q", text)
		}
		return n
	}
	if testing.Short() {
		return max(1, usual/10)
	}
	return usual
}
