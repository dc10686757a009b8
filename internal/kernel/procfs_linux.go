package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// procMagic is PROC_SUPER_MAGIC of linux/magic.h.
const procMagic = 0x9fa0

// readProc reads a small file that must itself lie on procfs. Container managers bind-mount files of their own
// over /proc entries, and such a file is no evidence about the kernel.
//
//	openat(AT_FDCWD, path, O_RDONLY|O_NONBLOCK|O_CLOEXEC), fstatfs, read…, close
func readProc(path string, buf []byte) ([]byte, error) {
	fd, err := openRetry(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	if err := onProcfs(fd, path); err != nil {
		return nil, err
	}
	n := 0
	for n < len(buf) {
		m, err := ignoringEINTR(func() (int, error) { return unix.Read(fd, buf[n:]) })
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		if m == 0 {
			return buf[:n], nil
		}
		n += m
	}
	return nil, &fs.PathError{Op: "read", Path: path, Err: ErrTooLarge}
}

func onProcfs(fd int, path string) error {
	var st unix.Statfs_t
	if _, err := ignoringEINTR(func() (int, error) { return 0, unix.Fstatfs(fd, &st) }); err != nil {
		return &fs.PathError{Op: "fstatfs", Path: path, Err: err}
	}
	if st.Type != procMagic {
		return fmt.Errorf("%s does not lie on procfs: something is mounted over it (filesystem type %x)", path, uint64(st.Type))
	}
	return nil
}

// notMounted refuses a file that something was mounted over: another file of procfs, as the host name, passes for a
// boot id by its filesystem. Kernels before 5.8 cannot tell.
func notMounted(path string) error {
	var st unix.Statx_t
	_, err := ignoringEINTR(func() (int, error) { return 0, unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC, 0, &st) })
	if err == nil && st.Attributes_mask&st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return fmt.Errorf("%s is itself a mount point: something is mounted over it", path)
	}
	return nil
}

// readProcLink returns the text of a symbolic link on procfs, fs.ErrNotExist if there is none.
func readProcLink(path string) (string, error) {
	fd, err := openRetry(unix.AT_FDCWD, path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	if err := onProcfs(fd, path); err != nil {
		return "", err
	}
	var buf [128]byte
	n, err := ignoringEINTR(func() (int, error) { return unix.Readlinkat(fd, "", buf[:]) })
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: path, Err: err}
	}
	return string(buf[:n]), nil
}

func readStat(pid int) (procStat, error) {
	var buf [1024]byte
	text, err := readProc("/proc/"+strconv.Itoa(pid)+"/stat", buf[:])
	if err != nil {
		return procStat{}, err
	}
	st, err := parseProcStat(text)
	if err == nil && st.pid != pid {
		err = fmt.Errorf("/proc/%d/stat is about process %d", pid, st.pid)
	}
	return st, err
}

func readBootID() (string, error) {
	const path = "/proc/sys/kernel/random/boot_id"
	var ids [2]string
	for i := range ids {
		var buf [128]byte
		text, err := readProc(path, buf[:])
		if err != nil {
			return "", err
		}
		if ids[i], err = parseBootID(text); err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
	}
	if ids[0] != ids[1] {
		return "", fmt.Errorf("%s changes from one read to the next", path)
	}
	return ids[0], notMounted(path)
}

// namespaces is the identity of the caller's PID and time namespace. A kernel without time namespaces (before
// 5.6) has no link for them.
func namespaces(dir string) (string, error) {
	pid, err := readProcLink(dir + "/pid")
	if err != nil {
		return "", err
	}
	time, err := readProcLink(dir + "/time")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return pid + ";" + time, nil
}

// Self measures the calling process: its boot id, its namespaces, its start, its pidfd id. Anything missing
// makes the whole measurement void; the cause says what.
func Self() Observation {
	pid := os.Getpid()
	void := func(err error) Observation { return Observation{Presence: Running, Cause: err} }
	var buf [8192]byte
	status, err := readProc("/proc/self/status", buf[:])
	if err != nil {
		return void(err)
	}
	if err := ownProc(status, pid); err != nil {
		return void(err)
	}
	var line [1024]byte
	text, err := readProc("/proc/self/stat", line[:])
	if err != nil {
		return void(err)
	}
	st, err := parseProcStat(text)
	if err == nil && st.pid != pid {
		err = fmt.Errorf("/proc/self/stat is about process %d, not %d", st.pid, pid)
	}
	if err != nil {
		return void(err)
	}
	boot, err := readBootID()
	if err != nil {
		return void(err)
	}
	ns, err := namespaces("/proc/self/ns")
	if err != nil {
		return void(err)
	}
	o := Observation{Presence: Running, Instance: Instance{PID: pid, Platform: "linux", BootID: boot, Namespace: ns, StartID: st.start}}
	if fd, err := unix.PidfdOpen(pid, 0); err == nil {
		o.PidfdID = pidfdID(fd)
		unix.Close(fd)
	}
	return o
}

// Namespaces returns the PID and time namespace of another process; it needs the permission to trace it.
func Namespaces(pid int) (string, error) { return namespaces("/proc/" + strconv.Itoa(pid) + "/ns") }

// MachineID returns the id of this installation, machine-id(5), and where it was read.
func MachineID() (id, source string, err error) {
	var causes []error
	for _, path := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		text, err := readSmall(path)
		if err == nil {
			id, err = parseMachineID(text)
		}
		if err == nil {
			return id, "machine-id", nil
		}
		causes = append(causes, fmt.Errorf("%s: %w", path, err))
	}
	return "", "", errors.Join(causes...)
}

// readSmall reads a small regular file, following symbolic links, and never waits for one that is not regular.
func readSmall(path string) ([]byte, error) {
	fd, err := openRetry(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := File{fd: fd}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Kind != Regular {
		return nil, &NotRegularError{st.Kind}
	}
	return f.read(256)
}
