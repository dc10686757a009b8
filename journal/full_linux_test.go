package journal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/heirlock/heirlock"
)

func init() { roles["limited"] = limitedRole }

// limitedRole writes to the journal args[0] until a file size limit ends that (RLIMIT_FSIZE; works for everybody), and
// prints how it ended.
func limitedRole(args []string) int {
	signalIgnored()
	opts := stormOptions(heirlock.ReclaimStale)
	opts.MaxFileBytes = 1 << 20
	told := make(chan error, 2)
	opts.OnFailure = func(err error) { told <- err }
	j, err := Open(args[0], opts)
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 10_000, Max: unix.RLIM_INFINITY}); err != nil {
		fmt.Println("error", err)
		return 1
	}
	for err == nil {
		_, err = j.SubmitWait(context.Background(), item{Text: "0123456789"})
	}
	var refused *RefusedError
	fmt.Println("refused", errors.As(err, &refused) && refused.Reason == ErrFailed && errors.Is(err, unix.EFBIG))
	fmt.Println("told", errors.Is(<-told, unix.EFBIG))
	fmt.Println("close", errors.Is(j.Close(context.Background()), unix.EFBIG))
	fmt.Println(j)
	fmt.Println("told again", len(told))
	return 0
}

func signalIgnored() {
	c := make(chan os.Signal, 1) // Go has no default for SIGXFSZ that would not end the process
	signal.Notify(c, syscall.SIGXFSZ)
}

// A write that stops in the middle of a frame leaves whole frames only, and the journal has failed.
func TestShortWriteIsCutBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	a := play(t, "limited", path)
	for _, want := range []string{"refused true", "told true", "close true"} {
		if got := a.expect(""); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	status := a.expect("")
	a.expect("told again 0")
	now := look(t, path, Options[item]{MaxFiles: 1, MaxFileBytes: 10_000})
	st, err := os.Stat(path)
	if err != nil || now.torn > 0 || st.Size() < 9_800 {
		t.Errorf("%d bytes, %d torn, %v", st.Size(), now.torn, err)
	}
	for _, want := range []string{
		`"state":"failed"`, fmt.Sprintf(`"written":%d,`, len(now.frames)), `"pendingItems":0,"pendingBytes":0,"inFlight":0`, `"partialTails":0`,
		fmt.Sprintf(`"currentBytes":%d,`, st.Size()), fmt.Sprintf(`"lastFailure":{"phase":"write","sequence":%d,`, len(now.frames)+1),
	} {
		if !strings.Contains(status, want) {
			t.Errorf("no %s in %s", want, status)
		}
	}
	if _, err := os.Stat(path + ".lock"); err == nil {
		t.Error("the lock was not given back")
	}
	if code := a.wait(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// tornRole is limitedRole whose file cannot be cut either: ftruncate is answered with EIO, seccomp(2), for the main thread, on
// which the writer is driven by hand.
func tornRole(args []string) int {
	signalIgnored()
	j, err := prepare(args[0], stormOptions(heirlock.ReclaimStale))
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	prog := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // struct seccomp_data: nr
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_FTRUNCATE, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EIO)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	filter := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	err = errors.Join(
		unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
		unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0),
		unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1000, Max: unix.RLIM_INFINITY}),
	)
	for range 12 {
		_, submitErr := j.Submit(item{})
		err = errors.Join(err, submitErr)
	}
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	j.writer.drain()
	j.writer.over()
	j.writer.finish()
	fmt.Println(j)
	return 0
}

// What cannot be cut back stays torn and is counted, and no frame follows it; the next open keeps it and begins a file.
func TestTornWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	a := play(t, "torn", path)
	status := a.expect("")
	opts := stormOptions(heirlock.Refuse)
	now := look(t, path, opts)
	if code := a.wait(); code != 0 || now.torn != 1 || len(now.frames) < 5 {
		t.Errorf("exit status %d, %d frames, %d torn", code, len(now.frames), now.torn)
	}
	for _, want := range []string{
		`"state":"failed"`, `"accepted":12,"refused":0`, fmt.Sprintf(`"written":%d,"failed":%d,`, len(now.frames), 12-len(now.frames)),
		`"partialTails":1`, `"currentBytes":1000,`, "file too large", "ftruncate",
	} {
		if !strings.Contains(status, want) {
			t.Errorf("no %s in %s", want, status)
		}
	}
	j, err := Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close(context.Background())
	if s := j.Status(); s.PartialTails != 1 || s.Rotations != 1 || s.Recovery.Anomalies != 1 || s.CurrentBytes != 0 {
		t.Errorf("status %v", j)
	}
}

// mounted mounts something for the time of the test and returns where.
func mounted(t testing.TB, args ...string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	at := t.TempDir()
	if out, err := exec.Command("mount", append(args, at)...).CombinedOutput(); err != nil {
		t.Skipf("mount %q: %v: %s", args, err, out)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return at
}

// failing opens a journal, lets something happen to its disk, and submits until the journal fails with that errno. It
// requires that nothing that was confirmed is lost, and that the service goes on: the calls return, and the lock is
// free.
func failing(t *testing.T, path string, opts Options[item], happens func(), phase string, errno syscall.Errno) *Journal[item] {
	t.Helper()
	told := make(chan error, 2)
	opts.OnFailure = func(err error) { told <- err }
	j, err := Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	confirmed := uint64(0)
	write := func() error {
		for n := range 4 {
			if _, err := j.SubmitWait(context.Background(), item{Text: strings.Repeat("x", 50*n)}); err != nil {
				return err
			}
		}
		upto := j.Status().LastAccepted
		if err := j.Flush(context.Background()); err != nil {
			return err
		}
		confirmed = upto
		return nil
	}
	for range 20 {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	happens()
	for err == nil {
		err = write()
	}
	if told := <-told; !errors.Is(err, ErrFailed) || !errors.Is(err, errno) || !errors.Is(told, errno) {
		t.Errorf("it ended with %v, and told %v; want %v", err, told, errno)
	}
	if err := j.Close(context.Background()); !errors.Is(err, errno) {
		t.Errorf("close: %v", err)
	}
	s := j.Status()
	if s.State != stateFailed || s.LastFailure.Phase != phase || s.PendingItems != 0 || s.PendingBytes != 0 || s.Accepted != s.Written+s.Failed ||
		s.Written < confirmed || (s.RotationFailures > 0) != (phase == phaseRotation) {
		t.Errorf("status %v, want phase %s", j, phase)
	}
	if j.ledger.pending != (queue{}) {
		t.Error("the memory of the pending frames was not released")
	}
	now := look(t, path, opts)
	now.follows(t, shelfState{}, s.Written, opts.MaxFiles)
	if last := now.frames[len(now.frames)-1]; last.sequence != s.Written || now.torn > 0 {
		t.Errorf("the last frame is %v with %d torn, %d were written", last, now.torn, s.Written)
	}
	select {
	case err := <-told:
		t.Errorf("told again: %v", err)
	default:
	}
	return j
}

// fill makes a filesystem full, down to a few bytes.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 16; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
}

// A disk is full, or without an inode, or its directory immutable, while frames are appended and while files are rotated.
func TestDiskFull(t *testing.T) {
	large := stormOptions(heirlock.Refuse)
	large.MaxFileBytes = 1 << 20
	t.Run("while writing, tmpfs", func(t *testing.T) {
		dir := mounted(t, "-t", "tmpfs", "-o", "size=256k", "heirlock-test")
		failing(t, filepath.Join(dir, "j"), large, func() { fill(t, dir) }, phaseWrite, syscall.ENOSPC)
	})
	t.Run("while writing, ext4", func(t *testing.T) {
		dir := loopExt4(t)
		failing(t, filepath.Join(dir, "j"), large, func() { fill(t, dir) }, phaseWrite, syscall.ENOSPC)
	})
	t.Run("no inode at rotation, tmpfs", func(t *testing.T) {
		dir := mounted(t, "-t", "tmpfs", "-o", "nr_inodes=40", "heirlock-test")
		failing(t, filepath.Join(dir, "j"), stormOptions(heirlock.Refuse), func() {
			for n := 0; ; n++ {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("ballast", n)), nil, 0o600); err != nil {
					return
				}
			}
		}, phaseRotation, syscall.ENOSPC)
	})
	t.Run("immutable directory at rotation, ext4", func(t *testing.T) {
		dir := loopExt4(t)
		path := filepath.Join(dir, "j")
		j := failing(t, path, stormOptions(heirlock.Refuse), func() { shell(t, "chattr", "+i", dir) }, phaseRotation, syscall.EPERM)
		if _, err := os.Lstat(path + ".lock"); err != nil {
			t.Errorf("the lock: %v", err) // it could not be given back
		}
		shell(t, "chattr", "-i", dir)
		if err := j.Close(context.Background()); !errors.Is(err, syscall.EPERM) {
			t.Errorf("close again: %v", err)
		}
		if _, err := os.Lstat(path + ".lock"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the lock: %v", err)
		}
	})
}

func shell(t testing.TB, argv ...string) {
	t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
}

func loopExt4(t testing.TB) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	image := filepath.Join(t.TempDir(), "image")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 8<<20)); err != nil {
		t.Fatal(err)
	}
	shell(t, "mkfs.ext4", "-q", "-F", "-m", "0", image)
	return mounted(t, "-o", "loop", image)
}

// A journal cannot be opened where nothing can be written, and says so.
func TestReadOnlyDisk(t *testing.T) {
	dir := mounted(t, "-t", "tmpfs", "heirlock-test")
	shell(t, "mount", "-o", "remount,ro", dir)
	if _, err := Open(filepath.Join(dir, "j"), stormOptions(heirlock.Refuse)); !errors.Is(err, syscall.EROFS) {
		t.Errorf("%v, want %v", err, syscall.EROFS)
	}
}

// A second path to the file by a bind mount gets no second writer, though its lock has another name.
func TestBindMountOfTheFile(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	path, second := filepath.Join(dir, "j"), filepath.Join(other, "k")
	j, err := Open(path, stormOptions(heirlock.Refuse))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close(context.Background())
	inFile(t, second, "")
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	shell(t, "mount", "--bind", path, second)
	defer unix.Unmount(second, unix.MNT_DETACH)
	if _, err := Open(second, stormOptions(heirlock.Refuse)); !errors.Is(err, otherWriter{}) {
		t.Errorf("%v, want %v", err, otherWriter{})
	}
}

// Mode and owner go from file to file.
func TestOwnerIsCarriedOn(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	path := filepath.Join(t.TempDir(), "j")
	inFile(t, path, "")
	if err := errors.Join(os.Chown(path, 4242, 4343), os.Chmod(path, 0o640)); err != nil {
		t.Fatal(err)
	}
	j, err := Open(path, stormOptions(heirlock.Refuse))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 100 {
		if _, err := j.SubmitWait(context.Background(), item{Text: strings.Repeat("x", n)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if j.Status().Rotations < 3 {
		t.Fatalf("no rotations: %v", j)
	}
	for n := range 4 {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(filepath.Dir(path), generationName("j", int64(n))), &st); err != nil {
			t.Fatal(err)
		}
		if st.Uid != 4242 || st.Gid != 4343 || st.Mode&0o7777 != 0o640 {
			t.Errorf("generation %d: owner %d:%d, mode %#o", n, st.Uid, st.Gid, st.Mode)
		}
	}
}

// With a sink that is stuck, Submit refuses and counts, and memory stays within the bounds and a bit.
func TestMemoryOfAStuckSink(t *testing.T) {
	const pending, most = 8 << 20, 1 << 10
	j, err := prepare(filepath.Join(inMemory(t), "j"), Options[item]{
		MaxEventBytes: most, MaxPendingItems: math.MaxInt, MaxPendingBytes: pending, MaxFileBytes: 1 << 20, MaxFiles: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := inUse()
	accepted, refused := uint64(0), uint64(0)
	for n := range 200_000 {
		switch _, err := j.Submit(item{Text: strings.Repeat("x", n%900)}); {
		case err == nil:
			accepted++
		case errors.Is(err, ErrByteCapacity):
			refused++
		default:
			t.Fatal(err)
		}
	}
	if held := inUse() - before; held > pending+1<<20+most {
		t.Errorf("%d bytes held, with a bound of %d", held, pending)
	}
	if s := j.Status(); s.Accepted != accepted || s.Refused != refused || s.RefusalsByReason.ByteCapacity != refused || refused == 0 ||
		s.PendingBytes > pending || s.PendingBytes < pending-2*most || s.PendingItems != int(accepted) {
		t.Errorf("%d accepted, %d refused: %v", accepted, refused, j)
	}
	go j.writer.run()
	if err := j.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s := j.Status(); s.Written != accepted || s.PendingBytes != 0 {
		t.Errorf("%v", j)
	}
}

// What can hang whoever opens it is not opened; and a file that is no lock is not taken for one.
func TestOddPaths(t *testing.T) {
	dir := t.TempDir()
	fifo, device, occupied := filepath.Join(dir, "fifo"), filepath.Join(dir, "device"), filepath.Join(dir, "occupied")
	if err := errors.Join(unix.Mkfifo(fifo, 0o600), os.Symlink("/dev/zero", device)); err != nil {
		t.Fatal(err)
	}
	inFile(t, occupied+".lock", "not a lock\n")
	for path, says := range map[string]string{fifo: "not a regular file but a fifo", device: "not a regular file but a symlink", occupied: "ownerless"} {
		_, err := Open(path, stormOptions(heirlock.ReclaimStale))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s", path, err, says)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
}
