package heirlock

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"syscall"
	"time"

	"github.com/heirlock/heirlock/internal/kernel"
)

// create gives a new file of ours a name, if that is free: born complete, so that no file of ours is ever without its
// owner. ErrHeld: somebody else has the name.
//
//	Bear, pwrite, [fdatasync], linkat or renameat2, fstatat, [fsync of the directory]
func (t *target) create(name string) (held, error) {
	for range changingLooks {
		h, n, err := t.next(name)
		if err == nil {
			var ours bool
			if ours, err = n.Publish(name); ours {
				return h, t.syncName(&h)
			}
			if err == nil {
				t.giveBack(h, n)
				return held{}, ErrHeld
			}
			n.Discard()
		}
		switch {
		case errors.Is(err, kernel.ErrNoUnnamed) && !t.temporaries:
			t.temporaries = true
		case !errors.Is(err, kernel.ErrNameGone) && !errors.Is(err, kernel.ErrChanging):
			return held{}, inDir(t, err)
		}
	}
	return held{}, &fs.PathError{Op: "lock", Path: t.pathOf(name), Err: errors.New(causeChanging)}
}

// syncName makes a new name durable if the caller wants that; if that fails, the name goes again.
func (t *target) syncName(h *held) error {
	if !t.opts.Durable {
		return nil
	}
	err := t.dir.Sync()
	if err != nil {
		_ = t.remove(h)
		h.file.Close()
	}
	return err
}

// bear makes a file with our record that does not have its name yet.
func (t *target) bear(name string) (held, kernel.Newborn, error) {
	acquisition, temporary := newAcquisition(time.Now()), ""
	if t.temporaries {
		temporary = temporaryPrefix + acquisition
	}
	mode := uint32(0o600)
	if t.opts.Mode != 0 {
		mode = uint32(t.opts.Mode)
	}
	n, err := t.dir.Bear(temporary, mode)
	if err != nil {
		return held{}, n, err
	}
	h := held{file: n.File, stat: n.Stat, name: name, rec: t.record(acquisition, &n)}
	if err := t.fill(&n, &h.rec); err != nil {
		n.Discard()
		return held{}, n, err
	}
	return h, n, nil
}

// fill writes the record, after everything that could make the lock unusable later was ruled out.
func (t *target) fill(n *kernel.Newborn, rec *Record) error {
	content, err := appendRecord(make([]byte, 0, 768), rec)
	if err != nil {
		return err
	}
	longest := max(len(t.name)+len(guardSuffix), len(temporaryPrefix)+uuidLength+len(probeSuffix))
	if most := n.Filesystem.NameMax; most > 0 && longest > most {
		return &fs.PathError{Op: "lock", Path: t.name, Err: syscall.ENAMETOOLONG}
	}
	if len(content) >= maxRecord {
		return fmt.Errorf("the record would be longer than %d bytes", maxRecord)
	}
	return n.Fill(append(content, '\n'), t.opts.Durable)
}

// newAcquisition names one acquisition: a UUID of version 7 (RFC 9562), 48 bits of milliseconds and 74 random ones.
func newAcquisition(now time.Time) string {
	var u [16]byte
	_, _ = rand.Read(u[:]) // never fails
	binary.BigEndian.PutUint64(u[:8], uint64(now.UnixMilli())<<16|uint64(u[6])<<8|uint64(u[7]))
	u[6], u[8] = u[6]&0x0f|0x70, u[8]&0x3f|0x80
	text := make([]byte, 0, uuidLength)
	for i, part := range [...][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, part)
	}
	return string(text)
}

// acquiredLayout is RFC 3339 in UTC with milliseconds.
const acquiredLayout = "2006-01-02T15:04:05.000Z"

// record is what we say about ourselves in a file of ours.
func (t *target) record(acquisition string, n *kernel.Newborn) Record {
	at, dev, ino := threeTexts(time.Now(), n.Stat)
	rec := Record{PID: int64(syscall.Getpid()), Host: t.me.host, Machine: t.me.machine, AcquiredAt: at}
	if t.me.ownErr == nil {
		rec.Process = &t.me.own.Instance
	}
	e := &rec.Evidence
	e.Acquisition, e.Label, e.PidfdID = acquisition, t.opts.Label, t.me.own.PidfdID
	e.HandedOn = t.opts.HandOn
	if n.Flock == nil {
		e.Witness = t.opts.witness()
	}
	e.File.FS, e.File.Dev, e.File.Ino = n.Filesystem.Type, dev, ino
	if rec.Machine != "" {
		e.MachineSource = t.me.source
	}
	return rec
}

// threeTexts makes the texts of a record that differ at every acquire out of one allocation.
func threeTexts(now time.Time, st kernel.Stat) (at, dev, ino string) {
	var buf [80]byte
	b := now.UTC().AppendFormat(buf[:0], acquiredLayout)
	i := len(b)
	b = strconv.AppendUint(b, st.Dev, 10)
	j := len(b)
	all := string(strconv.AppendUint(b, st.Ino, 10))
	return all[:i], all[i:j], all[j:]
}

// witness is what the flock of the file will say about the owner: nothing, if the owner becomes a program that does
// not have it.
func (o *Options) witness() string {
	switch {
	case o.Exec && o.HandOn:
		return witnessChild
	case o.Exec:
		return ""
	case o.HandOn:
		return witnessFlockChild
	}
	return witnessFlock
}
