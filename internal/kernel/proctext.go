package kernel

import (
	"bytes"
	"fmt"
	"strconv"
)

// procStat is what heirlock takes from /proc/<pid>/stat, proc_pid_stat(5).
type procStat struct {
	pid     int
	state   byte
	threads int    // field 20, num_threads
	start   string // field 22, starttime in clock ticks since boot, as text
}

// parseProcStat reads one line of /proc/<pid>/stat. The command name, field 2, may hold spaces, parentheses
// and newlines, so everything is counted from the last closing parenthesis.
func parseProcStat(text []byte) (procStat, error) {
	open, last := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 1 || last < open {
		return procStat{}, fmt.Errorf("stat line without a command name in parentheses")
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text[:open])))
	if err != nil || pid < 1 {
		return procStat{}, fmt.Errorf("stat line does not begin with a process number")
	}
	fields := bytes.Fields(text[last+1:])
	const state, threads, start = 0, 17, 19 // fields 3, 20 and 22 of the whole line
	if len(fields) <= start || len(fields[state]) != 1 || !isLetter(fields[state][0]) {
		return procStat{}, fmt.Errorf("stat line has %d fields after the command name, want at least %d", len(fields), start+1)
	}
	n, err := strconv.Atoi(string(fields[threads]))
	if err != nil {
		return procStat{}, fmt.Errorf("num_threads is not a number")
	}
	if !isDecimal(fields[start]) {
		return procStat{}, fmt.Errorf("starttime is not a number")
	}
	return procStat{pid: pid, state: fields[state][0], threads: n, start: string(fields[start])}, nil
}

// statusNumbers returns the numbers of one line of /proc/<pid>/status, as "Tgid:" or "NStgid:"; nil if there
// is no such line or it holds anything else.
func statusNumbers(text []byte, field string) []int {
	for line := range bytes.Lines(text) {
		rest, found := bytes.CutPrefix(line, []byte(field))
		if !found {
			continue
		}
		var numbers []int
		for _, f := range bytes.Fields(rest) {
			n, err := strconv.Atoi(string(f))
			if err != nil {
				return nil
			}
			numbers = append(numbers, n)
		}
		return numbers
	}
	return nil
}

// ownProc reports whether /proc/self/status comes from a proc mount of the caller's own PID namespace: the
// thread-group number as the mount's namespace sees it, and in no namespace below.
func ownProc(status []byte, pid int) error {
	numbers := statusNumbers(status, "NStgid:")
	if len(numbers) == 1 && numbers[0] == pid {
		return nil
	}
	return fmt.Errorf("the proc mount belongs to another PID namespace: NStgid %v, own pid %d", numbers, pid)
}

// parseBootID checks the text of /proc/sys/kernel/random/boot_id: a UUID and a newline.
func parseBootID(text []byte) (string, error) {
	id := bytes.TrimSuffix(text, []byte("\n"))
	if len(id) != 36 {
		return "", fmt.Errorf("boot id has %d characters, want 36", len(id))
	}
	for i, c := range id {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && !isHex(c) {
			return "", fmt.Errorf("boot id is not a UUID")
		}
	}
	return string(id), nil
}

// parseMachineID checks the text of /etc/machine-id, machine-id(5): 32 hexadecimal digits, not all zero.
func parseMachineID(text []byte) (string, error) {
	id := bytes.TrimSuffix(text, []byte("\n"))
	if len(id) != 32 {
		return "", fmt.Errorf("machine id has %d characters, want 32", len(id))
	}
	zeros := 0
	for _, c := range id {
		if !isHex(c) {
			return "", fmt.Errorf("machine id is not hexadecimal")
		}
		if c == '0' {
			zeros++
		}
	}
	if zeros == len(id) {
		return "", fmt.Errorf("machine id is all zeros")
	}
	return string(id), nil
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDecimal(text []byte) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) > 0
}
