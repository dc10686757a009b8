package kernel

import "golang.org/x/sys/unix"

const dirFlags = unix.O_RDONLY

// openUnnamed: macOS has no files without a name.
func openUnnamed(int, uint32) (int, error) { return -1, ErrNoUnnamed }

func linkUnnamed(int, int, string) error { return ErrNoUnnamed }

// renameExclusive: renameatx_np(2) with RENAME_EXCL, on APFS and HFS+ since macOS 10.12.
func renameExclusive(dir int, from, to string) error {
	_, err := ignoringEINTR(func() (int, error) {
		return 0, unix.RenameatxNp(dir, from, dir, to, unix.RENAME_EXCL)
	})
	return err
}

// fdatasync: fsync(2) of macOS only reaches the drive; F_FULLFSYNC also empties its cache.
func fdatasync(fd int) error {
	_, err := ignoringEINTR(func() (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_FULLFSYNC, 0) })
	if err != nil { // not every filesystem knows it
		_, err = ignoringEINTR(func() (int, error) { return 0, unix.Fsync(fd) })
	}
	return err
}

func filesystemType(fd int) (typ string, nameMax int, err error) {
	var st unix.Statfs_t
	_, err = ignoringEINTR(func() (int, error) { return 0, unix.Fstatfs(fd, &st) })
	return unix.ByteSliceToString(st.Fstypename[:]), 255, err
}

// sameInode: nothing here tells an inode of the kernel from its number.
func sameInode(File, File) bool { return false }
