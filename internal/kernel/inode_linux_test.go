package kernel

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Two names of one file are one inode on a local filesystem, and two below FUSE, whatever their numbers say and whoever
// holds a flock of them.
func TestSameInode(t *testing.T) {
	two := func(dir string) (a, b *os.File) {
		t.Helper()
		first, second := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		a, err := os.Create(first)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Link(first, second); err != nil {
			t.Fatal(err)
		}
		if b, err = os.Open(second); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close(); b.Close() })
		return a, b
	}
	same := func(a, b *os.File) bool { return sameInode(File{int(a.Fd())}, File{int(b.Fd())}) }
	a, b := two(t.TempDir())
	c, _ := two(t.TempDir())
	if !same(a, b) || same(a, c) {
		t.Errorf("two names: %v, two files: %v", same(a, b), same(a, c))
	}
	if os.Getuid() != 0 {
		t.Skip("a FUSE mount needs root")
	}
	source, mnt := t.TempDir(), t.TempDir()
	if out, err := exec.Command("bindfs", source, mnt).CombinedOutput(); err != nil {
		t.Skipf("bindfs: %v\n%s", err, out)
	}
	defer func() {
		for range 100 {
			if exec.Command("umount", mnt).Run() == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		exec.Command("umount", "-l", mnt).Run()
	}()
	a, b = two(mnt)
	sa, errA := File{int(a.Fd())}.Stat()
	sb, errB := File{int(b.Fd())}.Stat()
	if errA != nil || errB != nil || !sa.SameFile(sb) {
		t.Skipf("this FUSE server shows two numbers: %+v, %+v", sa, sb)
	}
	if err := (File{int(b.Fd())}).Lock(true); err != nil { // as a sweeper would for an instant
		t.Fatal(err)
	}
	if same(a, b) {
		t.Error("two inodes of one number pass for one")
	}
	a.Close()
	b.Close()
}
