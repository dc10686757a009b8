//go:build freebsd || netbsd || openbsd || dragonfly

package kernel

import "golang.org/x/sys/unix"

const dirFlags = unix.O_RDONLY

func openUnnamed(int, uint32) (int, error) { return -1, ErrNoUnnamed }

func linkUnnamed(int, int, string) error { return ErrNoUnnamed }

// renameExclusive: the BSDs cannot rename without replacing; link(2) follows.
func renameExclusive(int, string, string) error { return unix.ENOSYS }

func fdatasync(fd int) error {
	_, err := ignoringEINTR(func() (int, error) { return 0, unix.Fsync(fd) })
	return err
}

// sameInode: nothing here tells an inode of the kernel from its number.
func sameInode(File, File) bool { return false }
