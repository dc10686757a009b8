package heirlock_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The environments of the fault suite: namespaces, mounts and small C programs.

// needsInitialNamespace: only the first PID namespace believes in the absence of a bare number.
func needsInitialNamespace(t testing.TB) {
	t.Helper()
	if link, err := os.Readlink("/proc/self/ns/pid"); err != nil || link != "pid:[4026531836]" {
		t.Skipf("needs the initial PID namespace, this is %s (%v)", link, err)
	}
}

// container is a prefix: a new PID namespace with its own /proc, whose first process the agent is.
func container(t testing.TB) []string {
	t.Helper()
	needs(t, "unshare", "mount")
	return []string{"unshare", "--pid", "--fork", "--mount-proc", "--kill-child"}
}

// arranged is a prefix: a new mount (and UTS) namespace, in which a line of shell runs first.
func arranged(t testing.TB, script string) []string {
	t.Helper()
	needs(t, "unshare", "mount", "hostname")
	return []string{"unshare", "--mount", "--uts", "sh", "-c", script + ` && exec "$@"`, "sh"}
}

// shell runs a command line that must succeed.
func shell(t testing.TB, argv ...string) {
	t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
}

func mountTmpfs(t testing.TB) string { return mounted(t, "-t", "tmpfs", "heirlock-test") }

func mountExt4(t testing.TB) string { return loopExt4(t, 8<<20, nil) }

// mountFUSE shows a directory a second time, through a FUSE server, until the end of the test.
func mountFUSE(t testing.TB, source string) string {
	t.Helper()
	needs(t, "bindfs", "umount")
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("needs FUSE: ", err)
	}
	dir := t.TempDir()
	shell(t, "bindfs", source, dir)
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// mountOverlay mounts an overlay with this upper directory.
func mountOverlay(t testing.TB, base string) (merged, upper string) {
	for _, name := range []string{"lower", "upper", "work"} {
		if err := os.Mkdir(filepath.Join(base, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	upper = filepath.Join(base, "upper")
	options := "lowerdir=" + filepath.Join(base, "lower") + ",upperdir=" + upper + ",workdir=" + filepath.Join(base, "work")
	return mounted(t, "-t", "overlay", "-o", options, "heirlock-test"), upper
}

// compiled is a C program, for what the Go runtime does not let a program do.
func compiled(t testing.TB, source string) string {
	t.Helper()
	needs(t, "gcc")
	bin := filepath.Join(publicDir(t), "program")
	if err := os.WriteFile(bin+".c", []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	shell(t, "gcc", "-O0", "-pthread", "-o", bin, bin+".c")
	return bin
}

// publicDir is a new directory that every user can reach, without the private parent of TempDir.
func publicDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// leaderless ends its first thread by pthread_exit, waits in its second until that is a zombie, says so, and then
// works until its input ends.
const leaderless = `
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>
#include <sched.h>
static pthread_t leader;
static void *work(void *unused) {
	char path[64], text[512], *state = "";
	pthread_join(leader, NULL);
	snprintf(path, sizeof path, "/proc/%d/stat", getpid());
	while (state[0] != 'Z') {
		sched_yield();
		int fd = open(path, O_RDONLY);
		int n = read(fd, text, sizeof text - 1);
		close(fd);
		if (n <= 0)
			continue;
		text[n] = 0;
		state = strrchr(text, ')') + 2;
	}
	if (write(1, "leaderless\n", 11) != 11)
		_exit(1);
	while (read(0, text, 1) > 0)
		;
	_exit(0);
}
int main(void) {
	pthread_t worker;
	leader = pthread_self();
	pthread_create(&worker, NULL, work, NULL);
	pthread_exit(NULL);
}
`

// denying makes pidfd_open(2) fail with the given error number, and becomes the program that follows.
const denying = `
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv) {
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | atoi(argv[1])),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {4, filter};
	if (argc < 3 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 90;
	execvp(argv[2], argv + 2);
	return 91;
}
`
