package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/heirlock/heirlock"
	"github.com/heirlock/heirlock/internal/kernel"
)

const (
	lockSuffix   = ".lock"
	guardSuffix  = lockSuffix + ".reclaim"
	nameMost     = 255     // bytes of a name, everywhere
	maxEventMost = 1 << 30 // a frame has to have a length everywhere
)

// Open opens the journal at a path for appending, takes its lock, and inspects what is retained; see Status.Recovery.
// The path is absolute and normal, its parent exists and can be listed, its name has at most 206 bytes and does not end in
// .lock or .lock.reclaim, and what lies there is nothing or a regular file.
//
// A lock that is not taken is an error that wraps the *heirlock.HeldError with the owner's identity; nothing has been
// touched then, nor after any other error about the options, the path, or what lies there. A file that somebody writes by
// another path is a heirlock.ErrHeld too. A file that ends within a line is kept as a generation, and the epoch begins a file
// of its own; with MaxFiles 1 that is an error, and nothing is removed.
func Open[T any](path string, opts Options[T]) (*Journal[T], error) {
	j, err := prepare(path, opts)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	go j.writer.run()
	return j, nil
}

// prepare opens a journal whose writer does not run yet.
func prepare[T any](path string, opts Options[T]) (*Journal[T], error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	s, err := locateShelf(path)
	if err != nil {
		return nil, err
	}
	s.files, s.bytes, s.mode = opts.MaxFiles, opts.MaxFileBytes, 0o600
	if opts.Mode != 0 {
		s.mode = uint32(opts.Mode)
	}
	b := bounds{opts.MaxEventBytes, opts.MaxPendingItems, opts.MaxPendingBytes, opts.MaxFileBytes, opts.MaxFiles}
	w := &writer{
		ledger: newLedger(newUUID(), b, opts.OnFailure), shelf: s, done: make(chan struct{}),
		window: max(batchBytes, int64(opts.frameMost())),
	}
	if err := w.open(path, opts.Lock, opts.frameMost()); err != nil {
		if s.open {
			s.active.Close()
		}
		s.dir.Close()
		return nil, err
	}
	return &Journal[T]{ledger: w.ledger, writer: w, maxEvent: opts.MaxEventBytes, validate: opts.Validate}, nil
}

// open takes the lock, and begins under it.
func (w *writer) open(path string, opts heirlock.Options, frameMost int) (err error) {
	s, st := w.shelf, &w.ledger.st
	if err := s.suits(); err != nil {
		return err
	}
	if _, _, err := s.regular(s.name); err != nil {
		return err
	}
	opts.Durable = true
	if opts.Policy == "" {
		opts.Policy = heirlock.Refuse
	}
	if w.lock, err = heirlock.TryAcquire(path+lockSuffix, opts); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.lock.Release())
		}
	}()
	if err := w.watch(); err != nil {
		return err
	}
	torn, rotated, err := s.begin()
	if err != nil {
		return err
	}
	if st.Recovery, err = s.inspect(frameMost); err != nil {
		return err
	}
	st.RemovedFiles = s.removed
	if torn {
		st.PartialTails++
	}
	if rotated {
		st.Rotations++
	}
	w.ledger.files(s)
	st.Lock = lockStatus{Policy: opts.Policy, ReclaimedStale: w.lock.Reclaimed != nil, Evidence: w.lock.Reclaimed}
	return nil
}

// watch learns to see the loss of the lock: by its event, and by its inode. It makes sure that the lock lies beside the
// file, should the path lead elsewhere by now.
func (w *writer) watch() (err error) {
	w.lockName = w.shelf.name + lockSuffix
	w.lockStat, err = w.shelf.dir.Stat(w.lockName)
	own := w.lock.Owner.Evidence.File
	if err != nil {
		return fmt.Errorf("looking at the lock: %w", err)
	}
	if own.Dev != strconv.FormatUint(w.lockStat.Dev, 10) || own.Ino != strconv.FormatUint(w.lockStat.Ino, 10) {
		return fmt.Errorf("the lock %s is not beside the file: %w", w.lock.Path, kernel.ErrChanging)
	}
	w.lost = w.lock.Lost()
	return nil
}

// locateShelf opens the parent of the path.
func locateShelf(path string) (*shelf, error) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("the path is not absolute and normal: %w", syscall.EINVAL)}
	}
	if strings.HasSuffix(path, lockSuffix) || strings.HasSuffix(path, guardSuffix) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("the name is that of a journal's lock, or of its guard: %w", syscall.EINVAL)}
	}
	p, err := locate(path)
	if err != nil {
		return nil, err
	}
	return &shelf{place: p}, nil
}

// suits makes sure, before anything is touched, that every name that may be wanted fits, and that the directory can be
// listed: to sync it is to open it for reading.
func (s *shelf) suits() error {
	most := nameMost
	if at, err := s.dir.Filesystem(); err == nil && at.NameMax > 0 {
		most = min(most, at.NameMax)
	}
	if longest := len(s.name) + len(quarantineSuffix) + epochLength; longest > most {
		err := fmt.Errorf("the name and what may be put behind it have %d bytes, at most %d: %w", longest, most, syscall.ENAMETOOLONG)
		return s.pathError("open", s.name, err)
	}
	if _, err := s.dir.Names(); err != nil {
		return &fs.PathError{Op: "open", Path: s.prefix + s.name, Err: fmt.Errorf("the directory cannot be listed: %w", err)}
	}
	return nil
}

// frameMost is the length of the largest frame.
func (o *Options[T]) frameMost() int { return frameBytes(maxSequence, o.MaxEventBytes) }

// check refuses bounds that are missing, or contradict each other.
func (o *Options[T]) check() error {
	switch {
	case o.MaxEventBytes <= 0, o.MaxPendingItems <= 0, o.MaxPendingBytes <= 0, o.MaxFileBytes <= 0, o.MaxFiles <= 0:
		return fmt.Errorf("all bounds are required and positive: %w", syscall.EINVAL)
	case o.MaxEventBytes > maxEventMost:
		return fmt.Errorf("MaxEventBytes is over %d: %w", maxEventMost, syscall.EINVAL)
	case o.MaxFiles > generationsMost:
		return fmt.Errorf("MaxFiles is over %d: %w", generationsMost, syscall.EINVAL)
	case int64(o.frameMost()) > o.MaxFileBytes:
		return fmt.Errorf("a frame with an event of MaxEventBytes %d has up to %d bytes, more than MaxFileBytes %d: %w",
			o.MaxEventBytes, o.frameMost(), o.MaxFileBytes, syscall.EINVAL)
	case int64(o.frameMost()) > o.MaxPendingBytes:
		return fmt.Errorf("a frame with an event of MaxEventBytes %d has up to %d bytes, more than MaxPendingBytes %d: %w",
			o.MaxEventBytes, o.frameMost(), o.MaxPendingBytes, syscall.EINVAL)
	case o.Mode&^0o777 != 0 || o.Mode != 0 && o.Mode&0o600 != 0o600:
		return fmt.Errorf("mode %#o is not a mode that lets the owner read and write: %w", uint32(o.Mode), syscall.EINVAL)
	}
	return nil
}
