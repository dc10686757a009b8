package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// special makes files that a careless open waits for.
func special(t *testing.T, dir string) map[string]string {
	t.Helper()
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket := "socket"
	t.Chdir(dir) // the name of a socket is short
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return map[string]string{"fifo": "fifo", "socket": "socket"}
}

// descriptors lists what this process has open of regular files and directories.
func descriptors(t *testing.T) (open []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "/proc/") && !strings.HasPrefix(name, "/dev/") {
			open = append(open, name)
		}
	}
	slices.Sort(open)
	return open
}

// However a reading ends, nothing stays open: this is looked at from within, where the files are open, and behind it.
func TestReadingClosesItsFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "j")
	for i, name := range []string{"j.2", "j.1", "j"} {
		inFile(t, filepath.Join(dir, name), frameText(epochA, uint64(2*i+1), "0")+frameText(epochA, uint64(2*i+2), "0"))
	}
	cause := errors.New("enough")
	for name, end := range map[string]func(cancel context.CancelCauseFunc, n int) (stop bool){
		"read to the end": func(context.CancelCauseFunc, int) bool { return false },
		"broken off":      func(_ context.CancelCauseFunc, n int) bool { return n == 3 },
		"cancelled": func(cancel context.CancelCauseFunc, n int) bool {
			if n == 3 {
				cancel(cause)
			}
			return false
		},
		"panicked": func(_ context.CancelCauseFunc, n int) bool {
			if n == 3 {
				panic(cause)
			}
			return false
		},
		"truncated": func(_ context.CancelCauseFunc, n int) bool {
			if n == 3 {
				if err := os.Truncate(filepath.Join(dir, "j"), 1); err != nil {
					t.Error(err)
				}
			}
			return false
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			n, most := 0, 0
			var last error
			func() {
				defer func() {
					if r := recover(); r != nil && r != cause {
						t.Errorf("panic %v", r)
					}
				}()
				for _, err := range Read(ctx, []string{path}, ReadOptions[jsontext.Value]{Generations: true}) {
					if last = err; err != nil {
						continue
					}
					n++
					most = max(most, ofDirectory(descriptors(t), dir))
					if end(cancel, n) {
						break
					}
				}
			}()
			want := map[string]string{"read to the end": "6 <nil>", "broken off": "3 <nil>", "cancelled": "3 enough", "panicked": "3 <nil>", "truncated": "4 truncated"}[name]
			if errors.Is(last, errTruncated) {
				last = errors.New("truncated")
			}
			if got := fmt.Sprint(n, " ", last); got != want {
				t.Errorf("read %s, want %s", got, want)
			}
			if left := ofDirectory(descriptors(t), dir); most != 3 || left != 0 {
				t.Errorf("%d files were open, %d are", most, left)
			}
			inFile(t, filepath.Join(dir, "j"), frameText(epochA, 5, "0")+frameText(epochA, 6, "0"))
		})
	}
}

func ofDirectory(open []string, dir string) (n int) {
	for _, name := range open {
		if strings.HasPrefix(name, dir+"/") {
			n++
		}
	}
	return n
}

// Who may not read a file is told so. Root may read everything, so the test runs itself as somebody else then.
func TestForbiddenFile(t *testing.T) {
	if os.Getuid() != 0 {
		testForbidden(t, t.TempDir())
		return
	}
	dir, err := os.MkdirTemp("/tmp", "heirlock-forbidden-") // t.TempDir is in a directory that only we may search
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	exe, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "test")
	if err := os.WriteFile(copied, exe, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, copied} {
		if err := errors.Join(os.Chmod(name, 0o755), os.Chown(name, 65534, 65534)); err != nil {
			t.Fatal(err)
		}
	}
	again := exec.Command(copied, "-test.run=^TestForbiddenFile$", "-test.count=1", "-test.v")
	again.Dir, again.Env = dir, append(os.Environ(), "TMPDIR="+dir)
	again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := again.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestForbiddenFile") {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

func testForbidden(t *testing.T, dir string) {
	path := inFile(t, filepath.Join(dir, "j"), frameText(epochA, 1, "0"))
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(dir, "closed")
	if err := os.Mkdir(closed, 0); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, filepath.Join(closed, "j")} {
		for _, generations := range []bool{false, true} {
			records, err := reading(t, []string{path}, ReadOptions[jsontext.Value]{Generations: generations})
			var named *fs.PathError
			if len(records) > 0 || !errors.Is(err, fs.ErrPermission) || !errors.As(err, &named) || named.Path != path {
				t.Errorf("%s: %q, %v", path, records, err)
			}
		}
	}
}
