package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"
)

func init() { roles["reader of many"] = manyRole }

// manyRole reads the files args[1:] as args[0] says, in a process that may open 40 files, and prints the sum of what it
// found and the error. Behind the first record it says so, and goes on when it is told.
func manyRole(args []string) int {
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 40, Max: 40}); err != nil {
		fmt.Println(err)
		return 1
	}
	how, paths := args[0], args[1:]
	if how == "verify" || how == "verify plainly" {
		report, err := Verify(context.Background(), paths, ReadOptions[jsontext.Value]{Generations: how == "verify"})
		fmt.Println("sum", report.Frames, report.Anomalies, report.Gaps, err)
		return 0
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	frames, odd := 0, 0
	var last error
	for rec, err := range Read(ctx, paths, ReadOptions[jsontext.Value]{Generations: how == "read", Follow: how == "follow"}) {
		if last = err; err != nil {
			break
		}
		if rec.Anomaly != nil || rec.Gap != nil {
			odd++
			continue
		}
		if frames++; frames == 1 {
			fmt.Println("begun")
			fmt.Scanln(new(string))
		}
		if rec.Sequence == 90 && filepath.Base(paths[len(paths)-1]) == "j" && how == "follow" {
			cancel()
		}
	}
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && filepath.Dir(name) == filepath.Dir(paths[0]) {
			fmt.Println("open", name)
		}
	}
	fmt.Println("sum", frames, odd, errors.Is(last, fs.ErrNotExist), errors.Is(last, errRotatedAway), last)
	return 0
}

// A journal of more files than descriptors is read, verified and followed, also while it is rotated; a file that was
// rotated away before its turn came is an error.
func TestReadMoreFilesThanDescriptors(t *testing.T) {
	for _, c := range []struct {
		how       string
		most      int // files
		rotations int
		want      string
	}{
		{"verify", 100, 0, "90 0 0 <nil>"},
		{"verify plainly", 100, 0, "90 0 0 <nil>"},
		{"read", 100, 0, "90 0 false false <nil>"},
		{"read", 100, 3, "90 0 false false <nil>"},
		{"follow", 100, 0, "90 0 false false <nil>"},
		{"follow", 100, 3, "90 0 false false <nil>"},
		{"read plainly", 100, 0, "90 0 false false <nil>"},
		{"read two", 100, 0, "180 0 false false <nil>"},
		{"verify two", 100, 0, "180 0 0 <nil>"},
		{"read", 90, 1, "90 0 false false <nil>"}, // the oldest is open by then
		{"read", 90, 2, "1 0 true true open "},
	} {
		t.Run(fmt.Sprint(c.how, c.most, c.rotations), func(t *testing.T) {
			r := newRotor(t, 90, c.most)
			paths := []string{r.path}
			if c.how == "read plainly" || c.how == "verify plainly" {
				paths = nil
				for n := 89; n >= 0; n-- {
					paths = append(paths, r.name(n))
				}
			}
			if how, two := strings.CutSuffix(c.how, " two"); two {
				c.how, paths = how, append(paths, newRotor(t, 90, 100).path)
			}
			if c.rotations == 2 {
				c.want += r.name(88) + ": " + errRotatedAway.Error() + ": file does not exist"
			}
			a := play(t, "reader of many", append([]string{c.how}, paths...)...)
			if c.how != "verify" && c.how != "verify plainly" {
				a.expect("begun")
				for range c.rotations {
					r.rotate()
				}
				fmt.Fprintln(a.in, "go")
			}
			if got := a.expect("sum "); got != c.want {
				t.Errorf("found %s, want %s", got, c.want)
			}
			a.wait()
		})
	}
}
