package journals

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/heirlock/heirlock/bench/timings/account"
)

// logger is a program that services write their lines to; argv prepares the directory, if it has to.
type logger struct {
	name string
	argv func(dir string) ([]string, error)
}

// loggersOf are ours, and those that are rivals: all rotate at 4 MiB and keep all files.
func loggersOf(ours string) []logger {
	write := func(dir string, more ...string) ([]string, error) {
		argv := append([]string{ours, "journal", "write", "--max-file-bytes", "4MiB", "--max-files", "1000"}, more...)
		return append(argv, filepath.Join(dir, "log")), nil
	}
	return []logger{
		{"heirlock", func(dir string) ([]string, error) { return write(dir) }},
		{"heirlock --raw", func(dir string) ([]string, error) { return write(dir, "--raw") }},
		{"multilog", func(dir string) ([]string, error) {
			return []string{"multilog", "s4194304", "n1000", filepath.Join(dir, "log")}, nil
		}},
		{"multilog t", func(dir string) ([]string, error) {
			return []string{"multilog", "t", "s4194304", "n1000", filepath.Join(dir, "log")}, nil
		}},
		{"svlogd", func(dir string) ([]string, error) {
			return []string{"svlogd", "-b", "65536", dir}, os.WriteFile(filepath.Join(dir, "config"), []byte("s4194304\nn1000\n"), 0o600)
		}},
		{"rotatelogs", func(dir string) ([]string, error) {
			return []string{"rotatelogs", filepath.Join(dir, "log"), "4M"}, nil
		}},
	}
}

// bare is the frames that heirlock makes of the lines, ready in memory, appended to a file in writes of 64 KiB: no pipe, no
// other process, nothing looked at.
const bare = "bare"

// Pipe writes the same lines through a pipe into each of the loggers that services use, and into ours.
func Pipe(dir, root string, rounds int) error {
	ours, err := filepath.Abs(filepath.Join(dir, "heirlock"))
	if err != nil {
		return err
	}
	if out, err := exec.Command("go", "-C", root, "build", "-o", ours, "./cmd/heirlock").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	e := newEvent(0)
	took, err := pipeRounds(dir, "500,000 lines of about 200 B", string(e.appendJSON(nil)), 500_000, rounds, loggersOf(ours))
	if err != nil {
		return err
	}
	for _, way := range []struct{ name, goal string }{
		{"heirlock", "pipe, 200 B: lines per second, × multilog"}, {"heirlock --raw", "pipe, 200 B, --raw: lines per second, × multilog"},
	} {
		if took["multilog"] == nil {
			account.NotMeasured(way.goal, "multilog is not installed")
			continue
		}
		account.Goal(way.goal, account.Ratio(took, "multilog", way.name), "≥", 1.5)
	}
	_, err = pipeRounds(dir, `2,000,000 lines {"a":1}`, `{"a":1}`, 2_000_000, rounds, loggersOf(ours))
	return err
}

// pipeRounds shows how long each logger takes for the line n times, and returns it.
func pipeRounds(dir, what, line string, n, rounds int, loggers []logger) (map[string][]float64, error) {
	input := []byte(strings.Repeat(line+"\n", n))
	var frames []byte
	for i := range n {
		frames = appendFrame(frames, uint64(i+1), func(b []byte) []byte { return append(b, line...) })
	}
	took, absent, kept := map[string][]float64{}, map[string]error{}, map[string]int64{bare: int64(len(frames))}
	for round := range rounds {
		for i := range len(loggers) + 1 {
			i = (i + round) % (len(loggers) + 1)
			at, err := os.MkdirTemp(dir, "pipe-")
			if err != nil {
				return nil, err
			}
			name, v := bare, 0.0
			if i == len(loggers) {
				v, err = appendAll(filepath.Join(at, "log"), frames)
			} else {
				name = loggers[i].name
				v, kept[name], err = piped(&loggers[i], at, input)
			}
			if errors.Is(err, exec.ErrNotFound) {
				absent[name], err = err, nil
			} else {
				took[name] = append(took[name], v)
			}
			if err := errors.Join(err, os.RemoveAll(at)); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	showPipe(what, n, loggers, took, absent, kept)
	return took, nil
}

func showPipe(what string, n int, loggers []logger, took map[string][]float64, absent map[string]error, kept map[string]int64) {
	s := account.Section{
		Title:   "through a pipe: " + what,
		Columns: []string{"", "thousand lines per second", "heirlock's speed ÷ it", "heirlock --raw's ÷ it", "bytes kept of each line"},
	}
	var faster []string
	for _, l := range append(loggers, logger{name: bare}) {
		if absent[l.name] != nil {
			s.Rows = append(s.Rows, []string{l.name, "not installed", "", "", ""})
			continue
		}
		plain := account.Ratio(took, l.name, "heirlock")
		s.Rows = append(s.Rows, []string{l.name, fmt.Sprintf("%.0f", float64(n)/account.Median(took[l.name])*1e6),
			fmt.Sprintf("%.2f", plain), fmt.Sprintf("%.2f", account.Ratio(took, l.name, "heirlock --raw")), fmt.Sprintf("%.1f", float64(kept[l.name])/float64(n))})
		if plain < 1 && l.name != bare && !strings.HasPrefix(l.name, "heirlock") {
			faster = append(faster, l.name)
		}
	}
	s.Below = "multilog t stamps each line, rotatelogs looks at its size once a second at most. bare is the frames of heirlock, ready in memory, appended to a file in writes of 64 KiB, without a pipe."
	if faster != nil {
		s.Below += " Faster than heirlock here: " + strings.Join(faster, ", ") + "."
	}
	account.Show(s)
}

func appendAll(path string, text []byte) (float64, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	for len(text) > 0 && err == nil {
		n := min(batch, len(text))
		_, err = f.Write(text[:n])
		text = text[n:]
	}
	err = errors.Join(err, f.Close())
	return float64(time.Since(began)), err
}

// piped runs a logger on the input, and returns how long that took and how many bytes it kept. One that keeps less than all
// of the lines would win for nothing.
func piped(l *logger, dir string, input []byte) (took float64, kept int64, err error) {
	argv, err := l.argv(dir)
	if err != nil {
		return 0, 0, err
	}
	if _, err := exec.LookPath(argv[0]); err != nil {
		return 0, 0, err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin = bytes.NewReader(input) // through a pipe that os/exec makes
	var said bytes.Buffer
	cmd.Stderr = &said
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, 0, fmt.Errorf("%w: %s", err, said.Bytes())
	}
	took = float64(time.Since(began))
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			kept += info.Size()
		}
		return err
	})
	if err == nil && kept < int64(len(input)) {
		err = fmt.Errorf("%d bytes kept of %d", kept, len(input))
	}
	return took, kept, err
}
