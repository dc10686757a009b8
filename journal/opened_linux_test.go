package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/heirlock/heirlock"
)

func init() { roles["nobody"] = nobodyRole }

// nobodyRole opens the journal args[0] as somebody who is not root.
func nobodyRole(args []string) int {
	if os.Getuid() == 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(65534), syscall.Setuid(65534)); err != nil {
			fmt.Println("error", err)
			return 1
		}
	}
	_, err := Open(args[0], stormOptions(heirlock.Refuse))
	fmt.Println(errors.Is(err, fs.ErrPermission), err)
	return 0
}

// A directory that may be searched and written but not listed holds no journal: it cannot be synced. That is said before
// anything is made.
func TestDirectoryThatCannotBeListed(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "heirlock-unlisted-") // t.TempDir is in a directory that only we may search
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o333); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "j")
	a := play(t, "nobody", path)
	got := a.expect("")
	if want := "true journal: open " + path + ": the directory cannot be listed: "; !strings.HasPrefix(got, want) || a.wait() != 0 {
		t.Errorf("%s, want %s", got, want)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// A name is refused at open if a stranger's file at the path could not be set aside; the longest that is not, is whole.
func TestLongNames(t *testing.T) {
	const longest = 255 - len(".quarantined-") - epochLength
	for _, n := range []int{longest, longest + 1, 242, 243, 255, 256} {
		dir := t.TempDir()
		path := filepath.Join(dir, strings.Repeat("n", n))
		j, err := prepare(path, stormOptions(heirlock.Refuse))
		if n > longest {
			var named *fs.PathError
			if !errors.Is(err, syscall.ENAMETOOLONG) || !errors.As(err, &named) || named.Path != path {
				t.Errorf("%d bytes: %v", n, err)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
				t.Errorf("%d bytes: left behind: %v, %v", n, entries, err)
			}
			if err == nil {
				j.writer.finish()
			}
			continue
		}
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		inFile(t, path, "a stranger")
		if _, err := j.Submit(item{}); err != nil {
			t.Fatal(err)
		}
		j.writer.drain()
		if s := j.Status(); s.State != stateOpen || s.Displaced != 1 || s.Written != 1 {
			t.Errorf("%d bytes: %v", n, j)
		}
		j.ledger.drain()
		j.writer.over()
		j.writer.finish()
	}
}
