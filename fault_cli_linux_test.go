package heirlock_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The faults that only the command line can have: its wrapper dies, its command does not.

// cli runs the command to its end and returns its exit status and both outputs.
func cli(t testing.TB, args ...string) (status int, out string) {
	t.Helper()
	cmd := exec.Command(buildCLI(t), args...)
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || !cmd.ProcessState.Exited() {
		t.Fatalf("heirlock %s: %v", strings.Join(args, " "), err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

// inspected requires the exit status and the verdict of `heirlock inspect`.
func inspected(t testing.TB, path string, status int, want string) {
	t.Helper()
	got, out := cli(t, "inspect", "--json", path)
	var v verdict
	if err := json.Unmarshal([]byte(out), &v); err != nil || got != status || v.String() != want {
		t.Fatalf("inspect: exit %d, %q (%v), want %d, %q", got, &v, err, status, want)
	}
}

// ran requires the exit status of `heirlock run -n … LOCK -- true`, and that a run that got the lock left no file.
func ran(t testing.TB, path string, status int, flags ...string) string {
	t.Helper()
	got, out := cli(t, append(append([]string{"run", "-n", "-v"}, flags...), path, "--", "true")...)
	if got != status {
		t.Fatalf("run %q: exit %d, want %d; %s", flags, got, status, out)
	}
	if status == 0 {
		onlyFiles(t, filepath.Dir(path))
	}
	return out
}

// atWork is a shell command that says so and works until its input ends.
var atWork = []string{"sh", "-c", "echo working; read -r line"}

// running starts `heirlock run` or exec with a command that works, and returns when it does.
func running(t testing.TB, prefix []string, args ...string) *actor {
	t.Helper()
	a := launch(t, nil, append(append(append(prefix, buildCLI(t)), args...), atWork...))
	a.expect("working")
	t.Cleanup(func() { a.in.Close() })
	return a
}

// The wrapper is killed, its command works on.
//
//	heirlock run:     takes ── SIGKILL
//	its command:             ─────────────────────── ends
//	next heirlock run:                 75, witness held    takes
func TestFaultRunKilledWhileCommandLives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	wrapper := running(t, nil, "run", path, "--")
	pidfd := openPidfd(t, wrapper.cmd.Process.Pid)
	command := openPidfd(t, childPID(t, wrapper.cmd.Process.Pid))
	inspected(t, path, 75, "held alive matched held")
	wrapper.cmd.Process.Kill()
	awaitEnd(t, pidfd)
	inspected(t, path, 75, "held gone pid-gone held")
	for _, policy := range everyPolicy {
		ran(t, path, 75, "--policy", string(policy))
	}
	if status, out := cli(t, "reclaim", path); status != 75 {
		t.Errorf("reclaim: exit %d, want 75; %s", status, out)
	}
	onlyFiles(t, filepath.Dir(path), "x.lock")
	wrapper.in.Close()
	awaitEnd(t, command)
	inspected(t, path, 3, "stale gone pid-gone released")
	if out := ran(t, path, 0); !strings.Contains(out, "pid-gone, witness released") {
		t.Errorf("run -v said %q, want its evidence", out)
	}
}

// The command ends and leaves a daemon behind that has the descriptor: the name is gone with the command.
//
//	heirlock run:      takes ─── releases
//	daemon:                 ────────────────────────
//	next heirlock run:                    takes
func TestFaultRunLeavesDaemonBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	status, out := cli(t, "run", path, "--", "sh", "-c", `sleep 1000 >/dev/null 2>&1 & echo $!; stat -Lc %i /proc/self/fd/$HEIRLOCK_FD "$HEIRLOCK_PATH"`)
	number, inodes, _ := strings.Cut(out, "\n")
	daemon := openPidfd(t, atoi(t, number))
	defer unix.PidfdSendSignal(daemon, unix.SIGKILL, nil, 0)
	if seen := strings.Fields(inodes); status != 0 || len(seen) != 2 || seen[0] != seen[1] {
		t.Fatalf("run: exit %d, %q; want the lock file's inode twice", status, seen)
	}
	onlyFiles(t, filepath.Dir(path))
	ran(t, path, 0, "--policy", "refuse")
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(daemon), Events: unix.POLLIN}}, 0); n != 0 || err != nil {
		t.Errorf("the daemon has ended before the second run did (%d, %v)", n, err)
	}
}

// exec becomes the command, a thread-group leader that leaves by pthread_exit included; what dies then is the owner.
func TestFaultExecBecomesLeaderlessProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	owner := launch(t, nil, []string{buildCLI(t), "exec", path, "--", compiled(t, leaderless)})
	owner.expect("leaderless")
	inspected(t, path, 75, "held alive matched held")
	ran(t, path, 75)
	owner.kill()
	inspected(t, path, 3, "stale gone pid-gone released")
	ran(t, path, 75, "--policy", "refuse")
	ran(t, path, 0)
}

// A container that was killed leaves its lock to the next one on the same node, under the policy for that.
func TestFaultRunInKilledContainer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	wrapper := running(t, container(t), "run", path, "--")
	first := openPidfd(t, childPID(t, wrapper.cmd.Process.Pid))
	inspected(t, path, 75, "held not-probed unavailable held")
	for _, policy := range everyPolicy {
		ran(t, path, 75, "--policy", string(policy))
	}
	wrapper.kill()
	awaitEnd(t, first)
	inspected(t, path, 4, "unproven not-probed unavailable released")
	if out := ran(t, path, 75); !strings.Contains(out, "the namespaces differ: recorded pid:[") {
		t.Errorf("run said %q, want the namespaces", out)
	}
	ran(t, path, 0, "--policy", "reclaim-released")
}

// Another boot id on a filesystem that others may reach is believed only under one declared machine id.
func TestFaultRunOnSharedFilesystemAfterReboot(t *testing.T) {
	path := filepath.Join(mountFUSE(t, t.TempDir()), "x.lock")
	r := onOtherBoot(t, generationOurs)
	r.Machine, r.Evidence.MachineSource = "rack-7", "declared"
	plantRecord(t, path, r)
	ran(t, path, 75)
	ran(t, path, 75, "--machine-id", "rack-8")
	ran(t, path, 0, "--machine-id", "rack-7")
}
