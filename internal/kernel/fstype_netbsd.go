package kernel

import "golang.org/x/sys/unix"

func filesystemType(fd int) (typ string, nameMax int, err error) {
	var st unix.Statvfs_t
	err = unix.Fstatvfs(fd, &st)
	return unix.ByteSliceToString(st.Fstypename[:]), int(st.Namemax), err
}
