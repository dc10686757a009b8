package account

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Write puts the tables and the picture of this run into a directory.
func Write(dir string) error {
	var b strings.Builder
	fmt.Fprintf(&b, `# Timings

Written by `+"`go -C bench run ./timings%s`"+`
at %s on %s. No figure is written by hand.
%s.
The machine is one that others use, so compare within a table: its peers ran side by side in each round, each round with another
first; the crowd and the idle ran once, one locker after the other. A distribution, and what is divided in its table, is that of all
rounds together. The ratio of a goal, and that of a table without distributions, is the median of the ratios within a round.

**The lock.** `+"`flock`"+` is flock(2) blocked in a Go program, `+"`gofrs`"+` and `+"`filemutex`"+` are wrappers of it; `+"`bare`"+` is the system calls
alone of a lock file that goes and comes by name.

**The journal.** `+"`F`"+` appends ready bytes in writes of 64 KiB; `+"`E`"+` encodes by hand and does that; `+"`V`"+` encodes with json v2, which
validates, and does that: none of the three rotates, none can have a second producer. `+"`P`"+` is zap → BufferedWriteSyncer → lumberjack,
`+"`S`"+` is zerolog → lumberjack; these and heirlock rotate at 4 MiB.

Compiled in: %s

![distributions](timings.svg)
`, strings.Join(append([]string{""}, os.Args[1:]...), " "), commit(), time.Now().UTC().Format(time.DateOnly), machine(), versions())
	g := goals()
	b.WriteString(g.markdown())
	for _, s := range sections {
		b.WriteString(s.markdown())
	}
	if err := os.WriteFile(filepath.Join(dir, "timings.md"), []byte(b.String()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "timings.svg"), []byte(picture()), 0o644)
}

// commit is what was measured, and whether that was all.
func commit() string {
	text, err := exec.Command("git", "describe", "--always", "--abbrev=7", "--dirty= and changes").Output()
	if err != nil {
		return "an unknown commit"
	}
	return strings.TrimSpace(string(text))
}

func machine() string {
	var uts unix.Utsname
	_ = unix.Uname(&uts)
	var info unix.Sysinfo_t
	_ = unix.Sysinfo(&info)
	return fmt.Sprintf("Linux %s, %d processors (%s), %.0f GiB of memory, temporary directory on %s, %s",
		unix.ByteSliceToString(uts.Release[:]), runtime.NumCPU(), processor(),
		float64(info.Totalram)*float64(info.Unit)/(1<<30), Filesystem(), runtime.Version())
}

// Filesystem is the one of the temporary directory.
func Filesystem() string {
	var fs unix.Statfs_t
	_ = unix.Statfs(os.TempDir(), &fs)
	switch fs.Type {
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.TMPFS_MAGIC:
		return "tmpfs"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlayfs"
	}
	return fmt.Sprintf("filesystem type %#x", fs.Type)
}

// processor is what the processor calls itself.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.HasPrefix(name, "model name") {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// versions are those of the peers that are compiled in.
func versions() string {
	var found []string
	info, _ := debug.ReadBuildInfo()
	for _, peer := range []string{
		"github.com/gofrs/flock", "github.com/alexflint/go-filemutex", "github.com/go-json-experiment/json",
		"go.uber.org/zap", "github.com/rs/zerolog", "gopkg.in/natefinch/lumberjack.v2",
	} {
		for _, d := range info.Deps {
			if d.Path == peer {
				found = append(found, d.Path+" "+d.Version)
			}
		}
	}
	return strings.Join(found, ",\n") + "."
}
