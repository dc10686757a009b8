package heirlock_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heirlock/heirlock"
)

// oddity is something that can lie at a name where a lock or a guard is looked for, and what a refusal says of it.
type oddity struct {
	name  string
	make  func(t *testing.T, path string) error
	state string
	cause string // part of it
}

var oddities = []oddity{
	{"symlink", link("target", "a file\n"), "unproven", "not a regular file but a symlink"},
	{"dangling symlink", link("nothing", ""), "unproven", "not a regular file but a symlink"},
	{"fifo", func(_ *testing.T, path string) error { return unix.Mkfifo(path, 0o600) }, "unproven", "not a regular file but a fifo"},
	{"directory", func(_ *testing.T, path string) error { return os.Mkdir(path, 0o700) }, "unproven", "not a regular file but a directory"},
	{"socket", listen, "unproven", "not a regular file but a socket"},
	{"device", func(t *testing.T, path string) error {
		needs(t)
		return unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))) // zero(4) has no end
	}, "unproven", "not a regular file but a device"},
	{"hard link to a foreign file", func(_ *testing.T, path string) error {
		foreign := filepath.Join(filepath.Dir(path), "foreign")
		return errors.Join(os.WriteFile(foreign, []byte("precious\n"), 0o600), os.Link(foreign, path))
	}, "ownerless", "the record is not read"},
	{"hard link to a held lock", func(t *testing.T, path string) error {
		other := filepath.Join(filepath.Dir(path), "other.lock")
		l, err := heirlock.TryAcquire(other, heirlock.Options{})
		if err != nil {
			return err
		}
		t.Cleanup(func() { l.Release() })
		return os.Link(other, path)
	}, "held", ""},
	{"sparse gibibyte", func(_ *testing.T, path string) error {
		return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<30))
	}, "unproven", "larger than a record can be"},
	{"one byte too many", func(t *testing.T, path string) error { return os.WriteFile(path, padded(t, 16<<10+1), 0o600) }, "unproven", "larger than a record can be"},
	{"empty", content(""), "ownerless", "the file is empty"},
	{"garbage", content("\x7fELF\x02\x01 no record"), "ownerless", "the record is not read"},
	{"nul bytes", content(strings.Repeat("\x00", 4096)), "ownerless", "NUL bytes"},
	{"half a record", func(t *testing.T, path string) error {
		return os.WriteFile(path, record(t)[:len(record(t))/2], 0o600)
	}, "ownerless", "the record is not read"},
	{"unknown owner", content(`{"pid":0,"host":"h","acquiredAt":"t"}`), "unproven", "pid is not a process number"},
	{"live record of full length", func(t *testing.T, path string) error {
		own := fmt.Sprintf(`{"pid":%d,"host":%q,"acquiredAt":"now"}`, os.Getpid(), hostname(t))
		return os.WriteFile(path, append([]byte(own), bytes.Repeat([]byte(" "), 16<<10-len(own))...), 0o600)
	}, "held", ""},
}

func content(text string) func(*testing.T, string) error {
	return func(_ *testing.T, path string) error { return os.WriteFile(path, []byte(text), 0o600) }
}

func link(target, text string) func(*testing.T, string) error {
	return func(_ *testing.T, path string) error {
		to := filepath.Join(filepath.Dir(path), target)
		if text != "" {
			if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
				return err
			}
		}
		return os.Symlink(to, path)
	}
}

// listen binds a socket there; the name is bound under a short one, sockets having short names.
func listen(t *testing.T, path string) error {
	short := filepath.Join(os.TempDir(), fmt.Sprintf("s%d", os.Getpid()))
	l, err := net.Listen("unix", short)
	if err != nil {
		return err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	t.Cleanup(func() { l.Close() })
	return os.Rename(short, path)
}

// padded is a dead owner's record, with spaces up to a length.
func padded(t *testing.T, length int) []byte {
	b := bytes.TrimSpace(record(t))
	return append(bytes.Clone(b), bytes.Repeat([]byte(" "), length-len(b))...)
}

func hostname(t *testing.T) string {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// picture is everything about a directory that a refusal must not change.
func (s *scene) picture() string {
	s.t.Helper()
	var b strings.Builder
	for _, name := range s.names() {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(s.dir, name), &st); err != nil {
			s.t.Fatal(err)
		}
		target, _ := os.Readlink(filepath.Join(s.dir, name))
		fmt.Fprintln(&b, name, st.Ino, st.Mode, st.Nlink, st.Size, st.Mtim, st.Ctim, target)
	}
	return b.String()
}

// prompt requires that a call comes back within moments, whatever it meets.
func prompt[T any](t *testing.T, call func() (T, error)) (T, error) {
	t.Helper()
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		v, err := call()
		answered <- answer{v, err}
	}()
	select {
	case a := <-answered:
		return a.value, a.err
	case <-time.After(2 * time.Second):
		t.Fatal("no answer within two seconds")
		panic("unreachable")
	}
}

var policies = []heirlock.Policy{heirlock.Refuse, heirlock.ReclaimStale, heirlock.ReclaimReleased}

// attempts are all calls that might remove or follow what lies at the path, and the diagnosis of their refusal.
func (s *scene) attempts(t *testing.T, look func(policy heirlock.Policy, d *heirlock.Diagnosis)) {
	t.Helper()
	for _, policy := range policies {
		for name, call := range map[string]func() (any, error){
			"TryAcquire": func() (any, error) { return heirlock.TryAcquire(s.path, heirlock.Options{Policy: policy}) },
			"Reclaim":    func() (any, error) { return heirlock.Reclaim(s.path, "", heirlock.Options{Policy: policy}) },
		} {
			got, err := prompt(t, call)
			var refused *heirlock.HeldError
			if !errors.As(err, &refused) || !errors.Is(err, heirlock.ErrHeld) || !errors.Is(err, syscall.EEXIST) && !errors.Is(err, os.ErrExist) {
				t.Errorf("%s, %s: %+v, %v; want a refusal", name, policy, got, err)
				continue
			}
			look(policy, &refused.Diagnosis)
		}
	}
}

// What lies at the lock's path and is no lock is refused by every call at once, said, never followed and never changed.
func TestOddThingAtTheLockPath(t *testing.T) {
	for _, odd := range oddities {
		t.Run(odd.name, func(t *testing.T) {
			s := newScene(t, t.TempDir())
			if err := odd.make(t, s.path); err != nil {
				t.Fatal(err)
			}
			before := s.picture()
			d, err := prompt(t, func() (*heirlock.Diagnosis, error) { return heirlock.Inspect(s.path, heirlock.Options{}) })
			if err != nil || d.State != odd.state || !strings.Contains(d.Cause, odd.cause) {
				t.Errorf("inspect: %+v, %v; want %s, %q", d, err, odd.state, odd.cause)
			}
			s.attempts(t, func(policy heirlock.Policy, d *heirlock.Diagnosis) {
				if d.State != odd.state || !strings.Contains(d.Cause, odd.cause) || len(d.ReclaimableBy) > 0 {
					t.Errorf("%s: %+v; want %s, %q", policy, d, odd.state, odd.cause)
				}
			})
			if after := s.picture(); after != before {
				t.Errorf("before:\n%safter:\n%s", before, after)
			}
		})
	}
}

// The same at the guard's path, beside a dead lock that every policy but refuse would take: the guard stands in the way.
func TestOddThingAtTheGuardPath(t *testing.T) {
	for _, odd := range oddities {
		t.Run(odd.name, func(t *testing.T) {
			s := newScene(t, t.TempDir())
			leaveDead(t, s.path)
			if err := odd.make(t, s.guard()); err != nil {
				t.Fatal(err)
			}
			before := s.picture()
			d, err := prompt(t, func() (*heirlock.Diagnosis, error) { return heirlock.Inspect(s.path, heirlock.Options{}) })
			if err != nil || d.State != "stale" || d.Guard == nil || d.Guard.State != odd.state || !strings.Contains(d.Guard.Cause, odd.cause) {
				t.Errorf("inspect: %+v, %v; want stale, its guard %s, %q", d, err, odd.state, odd.cause)
			}
			s.attempts(t, func(policy heirlock.Policy, d *heirlock.Diagnosis) {
				guarded := d.Guard != nil && d.Guard.State == odd.state && strings.Contains(d.Guard.Cause, odd.cause)
				if d.State != "stale" || guarded == (policy == heirlock.Refuse) {
					t.Errorf("%s: %+v, guard %+v; want stale, and unless refused anyway a guard that is %s, %q", policy, d, d.Guard, odd.state, odd.cause)
				}
			})
			if after := s.picture(); after != before {
				t.Errorf("before:\n%safter:\n%s", before, after)
			}
		})
	}
}

// A dead owner's record counts wherever it lies in a regular file of at most 16 KiB: with padding to the last byte, and under
// a second name, which stays.
func TestOddButDeadRecordIsInherited(t *testing.T) {
	for _, place := range []string{"x.lock", "x.lock.reclaim"} {
		for name, make := range map[string]func(t *testing.T, path string) error{
			"full length": func(t *testing.T, path string) error { return os.WriteFile(path, padded(t, 16<<10), 0o600) },
			"hard link": func(t *testing.T, path string) error {
				leaveDead(t, filepath.Join(filepath.Dir(path), "backup"))
				return os.Link(filepath.Join(filepath.Dir(path), "backup"), path)
			},
		} {
			t.Run(name+" at "+place, func(t *testing.T) {
				s := newScene(t, t.TempDir())
				leaveDead(t, s.path)
				if err := make(t, filepath.Join(s.dir, "odd")); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(filepath.Join(s.dir, "odd"), filepath.Join(s.dir, place)); err != nil {
					t.Fatal(err)
				}
				s.takeAndRelease()
				if name == "hard link" {
					s.only("backup")
				} else {
					s.only()
				}
			})
		}
	}
}
