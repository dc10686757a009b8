package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heirlock/heirlock"
	"github.com/heirlock/heirlock/journal"
)

// farmOptions of every lock: processes of other namespaces must be able to inherit.
var farmOptions = heirlock.Options{Policy: heirlock.ReclaimReleased}

// event is what a journal holds here.
type event struct {
	PID  int    `json:"pid"`
	Text string `json:"text"`
}

// mark is what notices a second holder, without any part of heirlock: a POSIX record lock on a file of its own. The kernel
// drops it when its process ends, before any flock of that process: it is dropped as the descriptor table is closed, a
// flock only with the file behind the descriptor.
type mark struct{ fd int }

func openMark(dir string) (mark, error) {
	fd, err := unix.Open(filepath.Join(dir, "mark"), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	return mark{fd}, err
}

func (m mark) set(kind int16) error {
	for {
		err := unix.FcntlFlock(uintptr(m.fd), unix.F_SETLK, &unix.Flock_t{Type: kind})
		if err != unix.EINTR {
			return err
		}
	}
}

// farmer takes the lock again and again until its input ends.
func farmer(args []string) int {
	dir := args[0]
	m, err := openMark(dir)
	if err != nil {
		fmt.Println("E", err)
		return 1
	}
	var over atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		over.Store(true)
	}()
	for !over.Load() {
		if err := farmOnce(dir, m); err != nil {
			fmt.Println("E", err)
			return 1
		}
		time.Sleep(rand.N(20 * time.Millisecond))
	}
	return 0
}

func farmOnce(dir string, m mark) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	l, err := heirlock.Acquire(ctx, filepath.Join(dir, "lk"), farmOptions)
	if errors.Is(err, heirlock.ErrHeld) {
		fmt.Println("W", err)
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Println("A", evidenceOf(l.Reclaimed))
	if err := tend(dir, m); err != nil {
		return err
	}
	if err := l.Release(); err != nil {
		return err
	}
	fmt.Println("R")
	return nil
}

// farmhand is the command under heirlock run: the lock is its wrapper's.
func farmhand(args []string) int {
	m, err := openMark(args[0])
	if err == nil {
		fmt.Println("A by heirlock run")
		err = tend(args[0], m)
	}
	if err != nil {
		fmt.Println("E", err)
		return 1
	}
	return 0
}

// tend is the work under the lock: nobody else may be at it, and the journal must be to be had.
func tend(dir string, m mark) error {
	if err := m.set(unix.F_WRLCK); err != nil {
		fmt.Println("T", err)
		return nil
	}
	j, err := openJournal(dir)
	if err != nil {
		return err
	}
	status := j.Status()
	fmt.Println("J", status.Epoch, evidenceOf(status.Lock.Evidence))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for range 1 + rand.N(3) {
		var last journal.Receipt
		for range 1 + rand.N(8) {
			if last, err = j.SubmitWait(ctx, event{os.Getpid(), "a line of some length, as a service writes it"}); err != nil {
				return err
			}
		}
		confirm := j.Flush
		if rand.N(8) == 0 {
			confirm = j.Sync
		}
		if err := confirm(ctx); err != nil {
			return err
		}
		fmt.Println("F", status.Epoch, last.Sequence)
		time.Sleep(rand.N(10 * time.Millisecond))
	}
	if err := j.Close(ctx); err != nil {
		return err
	}
	return m.set(unix.F_UNLCK)
}

// openJournal waits for a predecessor that is on its way out.
func openJournal(dir string) (*journal.Journal[event], error) {
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		j, err := journal.Open(filepath.Join(dir, "events.jsonl"), journal.Options[event]{
			MaxEventBytes: 4 << 10, MaxPendingItems: 64, MaxPendingBytes: 1 << 20, MaxFileBytes: 1 << 20, MaxFiles: 64, Lock: farmOptions})
		if err == nil || !errors.Is(err, heirlock.ErrHeld) || time.Now().After(end) {
			return j, err
		}
		fmt.Println("H", err)
	}
}

// evidenceOf is the kind of evidence on which a lock was inherited.
func evidenceOf(d *heirlock.Diagnosis) string {
	switch {
	case d == nil:
		return "free"
	case d.Identity == "unavailable":
		return "witness released"
	}
	return string(d.Identity)
}
