package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// pipes writes the same lines through a pipe into each of the loggers that services use, and into ours.
func pipes(dir string, rounds int) error {
	ours := filepath.Join(dir, "heirlock")
	if out, err := exec.Command("go", "build", "-o", ours, "github.com/heirlock/heirlock/cmd/heirlock").CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	loggers := []struct {
		name string
		argv func(dir string) []string
	}{
		{"heirlock", func(dir string) []string {
			return []string{ours, "journal", "write", "--max-file-bytes", "4MiB", "--max-files", "1000", filepath.Join(dir, "log")}
		}},
		{"heirlock --raw", func(dir string) []string {
			return []string{ours, "journal", "write", "--raw", "--max-file-bytes", "4MiB", "--max-files", "1000", filepath.Join(dir, "log")}
		}},
		{"multilog", func(dir string) []string { return []string{"multilog", "s4194304", "n1000", filepath.Join(dir, "log")} }},
		{"svlogd", func(dir string) []string { return []string{"svlogd", "-b", "65536", dir} }},
		{"rotatelogs", func(dir string) []string { return []string{"rotatelogs", filepath.Join(dir, "log"), "4M"} }},
	}
	var input bytes.Buffer
	const n = 500_000
	e := newEvent(0)
	line := append(e.appendJSON(nil), '\n')
	for range n {
		input.Write(line)
	}
	took := map[string][]float64{}
	for round := range rounds {
		for i := range loggers {
			l := loggers[(i+round)%len(loggers)]
			at, err := os.MkdirTemp(dir, "pipe-")
			if err != nil {
				return err
			}
			argv := l.argv(at)
			if _, err := exec.LookPath(argv[0]); err != nil {
				if round == 0 {
					fmt.Printf("pipe    %-15s not run: %v\n", l.name, err)
				}
				continue
			}
			v, err := piped(argv, input.Bytes())
			if err := errors.Join(err, os.RemoveAll(at)); err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
			took[l.name] = append(took[l.name], v)
		}
	}
	for _, l := range loggers {
		if v := took[l.name]; v != nil {
			fmt.Printf("pipe    %-15s %8.0f lines per second\n", l.name, n/median(v)*1e9)
		}
	}
	if took["multilog"] != nil {
		atLeast("pipe: lines per second, × multilog", ratio(took, "multilog", "heirlock"), 1.5)
		atLeast("pipe: lines per second with --raw, × multilog", ratio(took, "multilog", "heirlock --raw"), 1.5)
	}
	return nil
}

func piped(argv []string, input []byte) (float64, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin = bytes.NewReader(input) // through a pipe that os/exec makes
	var said bytes.Buffer
	cmd.Stderr = &said
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, said.Bytes())
	}
	return float64(time.Since(began)), nil
}
