package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

//go:embed peer.js
var peerJS []byte

// packageVersion is what dpkg says, "" where there is no dpkg.
func packageVersion(name string) string {
	out, err := exec.Command("dpkg-query", "-W", "-f", "${Version}", name).Output()
	if err != nil {
		return ""
	}
	return name + " " + string(out)
}

func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok || path == "" {
		return ""
	}
	for _, d := range info.Deps {
		if d.Path == path {
			return path + " " + d.Version
		}
	}
	return ""
}

// machine describes where the matrix was run.
func machine() string {
	var u unix.Utsname
	_ = unix.Uname(&u)
	var fs unix.Statfs_t
	_ = unix.Statfs(os.TempDir(), &fs)
	return fmt.Sprintf("Linux %s %s, %d processors, temporary directory on filesystem type %x, %s",
		unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Machine[:]), runtime.NumCPU(), fs.Type, runtime.Version())
}

// write makes both documents.
func (t *table) write(docs string) error {
	if err := os.WriteFile(filepath.Join(docs, "fault-matrix.md"), []byte(t.markdown()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(docs, "fault-matrix.svg"), []byte(t.picture()), 0o644)
}

func (t *table) markdown() string {
	var b strings.Builder
	b.WriteString(`# The fault matrix

Written by ` + "`go -C bench run ./faults`" + ` (root, Linux; needs nothing but Go, runs more where more is installed, and says what
it left out). No cell is written by hand. The exit status is 0 only if heirlock did in every row what it owes.

![the matrix](fault-matrix.svg)

Two more proofs are the same command: ` + "`go -C bench run ./faults -broken`" + ` takes one rule at a time out of heirlock (no flock at
the removal, absence believed across namespaces, state Z believed, the guard taken over, age) and requires that a row of this
matrix shows two holders; ` + "`go -C bench run ./faults -soak 10m`" + ` lets processes lock, write journals, be killed, stopped and
restarted in containers on ext4, xfs, btrfs, tmpfs and overlay, and gives an account of every acquisition and frame.
` + "`-only heirlock`" + ` runs heirlock alone, within two minutes.

`)
	fmt.Fprintf(&b, "Run on %s, on %s.\n\n", time.Now().UTC().Format("2006-01-02"), machine())
	b.WriteString(`Every case is a real process, with real signals, namespaces and mounts. What a cell says is decided by who is alive (pidfds
held by the test) and who was let in, not by what a lock says of itself.

| word | meaning |
| --- | --- |
| recovers | the owner is dead, the contender was let in |
| refuses | the owner is at work, the contender was not let in |
| **two holders** | the owner is at work, and the contender was let in beside it |
| wedges | the owner is dead, the contender was not let in |
| leaves alone, takes, **harms** | nobody owns what lies there: it was left alone; it was locked over; a file that is not the lock was made or changed |
| cannot lock | it did not take a lock that nobody had |
| says who | the refusal names the owner's process |
| hangs | no answer to a single attempt within 10 s |

`)
	t.expectations(&b)
	for _, group := range []string{groupOurs, groupKernel, groupRecord} {
		t.groupTable(&b, group)
	}
	t.notes(&b)
	return b.String()
}

// expectations says where heirlock owes a refusal of the dead.
func (t *table) expectations(b *strings.Builder) {
	b.WriteString(`Where heirlock owes *wedges*, the evidence does not reach the owner, or says that something which it handed the lock to may
still be at work. It then refuses, says who and why, and leaves the word to an operator (` + "`heirlock reclaim --id`" + `):

`)
	for _, sc := range t.rows {
		var who []string
		for _, l := range t.columns {
			if l.ours() && sc.owes(l.name) == wedges {
				who = append(who, l.name)
			}
		}
		if len(who) > 0 {
			fmt.Fprintf(b, "- %s: %s\n", sc.title, strings.Join(who, "; "))
		}
	}
	b.WriteString("\n")
}

func (t *table) groupTable(b *strings.Builder, group string) {
	var columns []*locker
	for _, l := range t.columns {
		if l.group == group && l.missing == "" {
			columns = append(columns, l)
		}
	}
	fmt.Fprintf(b, "## %s\n\n| |", strings.ToUpper(group[:1])+group[1:])
	for _, l := range columns {
		fmt.Fprintf(b, " %s |", l.name)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(columns)) + "\n")
	for i := range t.rows {
		fmt.Fprintf(b, "| %s |", t.rows[i].title)
		for _, l := range columns {
			fmt.Fprintf(b, " %s |", t.at(&t.rows[i], l).markdown())
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	for _, l := range columns {
		fmt.Fprintf(b, "- %s: `%s`", l.name, l.form)
		if l.version != "" {
			fmt.Fprintf(b, " (%s)", l.version)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

func (c cell) markdown() string {
	s := c.outcome.String()
	if c.Word == double || c.Word == harms {
		s = "**" + c.Word + "**" + strings.TrimPrefix(s, c.Word)
	}
	if c.wrong {
		s += " **(not as owed)**"
	}
	if c.Note != "" && c.Word != absent {
		s += " (" + strings.ReplaceAll(c.Note, "|", `\|`) + ")"
	}
	return s
}

func (t *table) notes(b *strings.Builder) {
	b.WriteString("## What is done in each row\n\n")
	for _, sc := range t.rows {
		fmt.Fprintf(b, "- **%s**: %s\n", sc.title, sc.text)
	}
	b.WriteString("\nTwo holders behind a second mount is the price of a filesystem that does not carry flock; a kernel lock can do nothing about\nit there, and NFS or SMB mounts may carry it.\n")
	var missing []string
	for _, l := range t.columns {
		if l.missing != "" {
			missing = append(missing, fmt.Sprintf("- %s: %s\n", l.name, l.missing))
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		b.WriteString("\n## Not run\n\n" + strings.Join(missing, ""))
	}
}
