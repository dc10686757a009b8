package kernel

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// samples reads captured kernel texts. A glob that finds nothing is a test that would test nothing.
func samples(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", dir, "*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no samples in testdata/%s (%v)", dir, err)
	}
	out := map[string][]byte{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(name)] = text
	}
	return out
}

// Captured on Linux 6.18: names set through /proc/self/comm, a leader that left by pthread_exit with two threads
// still running, a process that nobody has waited for.
func TestParseProcStatSamples(t *testing.T) {
	want := map[string]procStat{
		"self":        {pid: 23827, state: 'R', threads: 1, start: "181575"},
		"paren":       {pid: 23677, state: 'S', threads: 1, start: "181168"}, // ") R 1 (a b"
		"newline":     {pid: 23678, state: 'S', threads: 1, start: "181168"}, // "two\nlines) Z"
		"kthread":     {pid: 2, state: 'S', threads: 1, start: "14"},
		"zombie":      {pid: 23813, state: 'Z', threads: 1, start: "181387"},
		"leader-left": {pid: 23767, state: 'Z', threads: 3, start: "181187"},
	}
	got := samples(t, "stat")
	if len(got) != len(want) {
		t.Errorf("%d samples, want %d", len(got), len(want))
	}
	for name, text := range got {
		if st, err := parseProcStat(text); err != nil || st != want[name] {
			t.Errorf("%s: %+v, %v; want %+v", name, st, err, want[name])
		}
	}
}

// statLine is a stat line with one value in each of the fields 3 to 22, of which 20 and 22 are given.
func statLine(pid, name, state, threads, start string) []byte {
	return fmt.Appendf(nil, "%s (%s) %s 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 %s 21 %s 23\n", pid, name, state, threads, start)
}

func TestParseProcStat(t *testing.T) {
	whole := procStat{pid: 7, state: 'S', threads: 20, start: "22"}
	for _, c := range []struct {
		name string
		line []byte
		want procStat // zero: an error
	}{
		{"plain", statLine("7", "sh", "S", "20", "22"), whole},
		{"empty name", statLine("7", "", "S", "20", "22"), whole},
		{"name of a stat line", statLine("7", "a) Z 1 1 1 1 (b", "S", "20", "22"), whole},
		{"name of parentheses", statLine("7", "))((", "S", "20", "22"), whole},
		{"name with a newline", statLine("7", "a\n8 (b", "S", "20", "22"), whole},
		{"name that is not UTF-8", statLine("7", "\xff\xfe", "S", "20", "22"), whole},
		{"start above 2⁶³", statLine("7", "sh", "S", "20", "18446744073709551615"), procStat{7, 'S', 20, "18446744073709551615"}},
		{"field 22 is the last", []byte("7 (sh) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22"), whole},

		{"empty", nil, procStat{}},
		{"no parentheses", []byte("7 sh S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22"), procStat{}},
		{"no closing parenthesis", []byte("7 (sh S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22"), procStat{}},
		{"closing before opening", []byte("7 )( S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22"), procStat{}},
		{"field 22 is missing", []byte("7 (sh) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21\n"), procStat{}},
		{"nothing after the name", []byte("7 (sh)\n"), procStat{}},
		{"no number", []byte("(sh) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22"), procStat{}},
		{"number zero", statLine("0", "sh", "S", "20", "22"), procStat{}},
		{"number below zero", statLine("-7", "sh", "S", "20", "22"), procStat{}},
		{"number is a word", statLine("self", "sh", "S", "20", "22"), procStat{}},
		{"two numbers", statLine("7 8", "sh", "S", "20", "22"), procStat{}},
		{"state of two letters", statLine("7", "sh", "SZ", "20", "22"), procStat{}},
		{"threads are a word", statLine("7", "sh", "S", "many", "22"), procStat{}},
		{"start is below zero", statLine("7", "sh", "S", "20", "-22"), procStat{}},
		{"start is a fraction", statLine("7", "sh", "S", "20", "22.5"), procStat{}},
	} {
		st, err := parseProcStat(c.line)
		if st != c.want || (err != nil) != (c.want == procStat{}) {
			t.Errorf("%s: %+v, %v; want %+v", c.name, st, err, c.want)
		}
	}
}

func TestStatusNumbers(t *testing.T) {
	for _, c := range []struct {
		text, field string
		want        []int
	}{
		{"Tgid:\t7\nNStgid:\t7\t1\n", "Tgid:", []int{7}},
		{"Tgid:\t7\nNStgid:\t7\t1\n", "NStgid:", []int{7, 1}},
		{"NStgid:\t7", "NStgid:", []int{7}},
		{"NStgid:\t7\nNStgid:\t8\n", "NStgid:", []int{7}},
		{" NStgid:\t7\n", "NStgid:", nil},
		{"Name:\tNStgid:\t7\n", "NStgid:", nil},
		{"NStgid:\n", "NStgid:", nil},
		{"NStgid:\t7\tx\n", "NStgid:", nil},
		{"NStgid:\t7.0\n", "NStgid:", nil},
		{"", "NStgid:", nil},
	} {
		if got := statusNumbers([]byte(c.text), c.field); !slices.Equal(got, c.want) {
			t.Errorf("%s of %q: %v, want %v", c.field, c.text, got, c.want)
		}
	}
}

// A number whose Tgid is another one belongs to a thread; leader-left is a number whose process still runs.
func TestStatusSamples(t *testing.T) {
	want := map[string]struct{ tgid, nstgid []int }{
		"self":         {[]int{23828}, []int{23828}},
		"nested":       {[]int{23817}, []int{23817, 1}},
		"thread":       {[]int{23767}, []int{23767}}, // of 23769
		"leader-left":  {[]int{23767}, []int{23767}},
		"zombie":       {[]int{23813}, []int{23813}},
		"escaped-name": {[]int{24429}, []int{24429}}, // the name is "x\nNStgid:\t1"
	}
	got := samples(t, "status")
	if len(got) != len(want) {
		t.Errorf("%d samples, want %d", len(got), len(want))
	}
	for name, text := range got {
		tgid, nstgid := statusNumbers(text, "Tgid:"), statusNumbers(text, "NStgid:")
		if !slices.Equal(tgid, want[name].tgid) || !slices.Equal(nstgid, want[name].nstgid) {
			t.Errorf("%s: Tgid %v NStgid %v, want %v", name, tgid, nstgid, want[name])
		}
	}
}

// A proc mount of another PID namespace shows our number as that namespace sees it, and ours beside it, or not at all.
func TestOwnProc(t *testing.T) {
	status := samples(t, "status")
	for _, c := range []struct {
		name string
		text []byte
		pid  int
		own  bool
	}{
		{"our number alone", status["self"], 23828, true},
		{"our number, name like a line", status["escaped-name"], 24429, true},
		{"two numbers, ours first", status["nested"], 23817, false},
		{"two numbers, ours last", status["nested"], 1, false},
		{"another number", status["self"], 23829, false},
		{"no such line", []byte("Name:\tsh\nTgid:\t23828\nPid:\t23828\n"), 23828, false},
		{"no number", []byte("NStgid:\t\n"), 0, false},
		{"empty", nil, 23828, false},
	} {
		if err := ownProc(c.text, c.pid); (err == nil) != c.own {
			t.Errorf("%s: %v, want own %v", c.name, err, c.own)
		}
	}
}

func TestParseBootID(t *testing.T) {
	const id = "5fc112d5-8ba3-4329-bf82-ab2f180a9958" // captured
	for text, want := range map[string]string{
		id + "\n":                              id,
		id:                                     id,
		strings.ToUpper(id) + "\n":             strings.ToUpper(id),
		id + "\n\n":                            "",
		" " + id:                               "",
		id[:35] + "\n":                         "",
		id + "0\n":                             "",
		id[:35] + "g\n":                        "",
		id[:8] + "0" + id[9:]:                  "",
		strings.ReplaceAll(id, "-", "") + "\n": "",
		"5fc112d58-ba3-4329-bf82-ab2f180a9958": "",
		"5fc112d5-8ba3-4329-bf82-ab2f180a995-": "",
		"\n":                                   "",
		"":                                     "",
	} {
		if got, err := parseBootID([]byte(text)); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestParseMachineID(t *testing.T) {
	const id = "3d1219c7c4c5404aaa1f6d2a48adfda4" // captured
	for text, want := range map[string]string{
		id + "\n":                                id,
		id:                                       id,
		strings.ToUpper(id) + "\n":               strings.ToUpper(id), // hexadecimal digits, taken as they stand
		strings.Repeat("0", 31) + "1\n":          strings.Repeat("0", 31) + "1",
		"uninitialized\n":                        "",
		strings.Repeat("0", 32) + "\n":           "",
		id[:31] + "\n":                           "",
		id + "0\n":                               "",
		id[:31] + "g\n":                          "",
		id[:31] + "\n\n":                         "",
		" " + id[:31]:                            "",
		"3d1219c7-c4c5-404a-aa1f-6d2a48adfda4\n": "",
		"\n":                                     "",
		"":                                       "",
	} {
		if got, err := parseMachineID([]byte(text)); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}

// Whatever stands before the parentheses and in the name, fields are counted from the last parenthesis; what is
// accepted is whole.
func FuzzProcStat(f *testing.F) {
	for _, text := range samples(f, "stat") {
		f.Add(text)
	}
	f.Add(statLine("7", "a) Z (b", "S", "20", "22"))
	f.Add(statLine("7", "a", "\x00", "20", "22"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if st, err := parseProcStat(text); err != nil && st != (procStat{}) {
			t.Errorf("error %v beside %+v", err, st)
		} else if err == nil && (st.pid < 1 || st.state == 0 || !isDecimal([]byte(st.start))) {
			t.Errorf("accepted %+v", st)
		}
		named, err := parseProcStat(statLine("7", string(text), "S", "20", "22"))
		if want := (procStat{7, 'S', 20, "22"}); err != nil || named != want {
			t.Errorf("as a command name: %+v, %v; want %+v", named, err, want)
		}
	})
}

// The proc mount is ours exactly if the first NStgid line holds one number, and that is ours.
func FuzzStatus(f *testing.F) {
	for _, text := range samples(f, "status") {
		f.Add(text, 23828)
	}
	f.Add([]byte("NStgid:\t7\tx\nNStgid:\t7\n"), 7)
	f.Fuzz(func(t *testing.T, text []byte, pid int) {
		own := ownProc(text, pid) == nil
		if numbers := statusNumbers(text, "NStgid:"); own != (len(numbers) == 1 && numbers[0] == pid) {
			t.Errorf("own %v with the numbers %v", own, numbers)
		}
		if own && !bytes.Contains(text, []byte("NStgid:")) {
			t.Error("own without an NStgid line")
		}
		line := fmt.Appendf(nil, "NStgid:\t%d\n", pid)
		if err := ownProc(append(line, text...), pid); err != nil {
			t.Errorf("our number on the first line: %v", err)
		}
	})
}
