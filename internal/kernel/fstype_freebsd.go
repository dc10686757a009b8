package kernel

import "golang.org/x/sys/unix"

func filesystemType(fd int) (typ string, nameMax int, err error) {
	var st unix.Statfs_t
	err = unix.Fstatfs(fd, &st)
	return unix.ByteSliceToString(st.Fstypename[:]), int(st.Namemax), err
}
