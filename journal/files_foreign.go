package journal

import (
	"bytes"
	"io/fs"
	"slices"

	"github.com/heirlock/heirlock/internal/kernel"
)

// A number behind the name can be a year, or a port: then the file is not ours.

// isOurs reports whether a file is empty, or begins with the head of a frame as we write it.
func (p place) isOurs(name string) (bool, error) {
	st, err := p.dir.Stat(name)
	if err != nil {
		return false, atPath(p.prefix+name, err)
	}
	if st.Kind == kernel.Regular && st.Size == 0 {
		return true, nil
	}
	f, err := p.open(name)
	if err != nil {
		return false, err
	}
	defer f.file.Close()
	head := make([]byte, min(int64(frameHeadMost), f.stat.Size))
	if _, err := f.file.ReadAt(head, 0); err != nil {
		return false, &fs.PathError{Op: "read", Path: f.path, Err: err}
	}
	return beginsFrame(head), nil
}

// isForeign reports whether a reader passes over a number that is behind missesMost missing ones. What cannot be looked
// at is for the reading to find out.
func (p place) isForeign(n int64) bool {
	ours, err := p.isOurs(generationName(p.name, n))
	return err == nil && !ours
}

// withoutForeign leaves out of ascending numbers what a reader passes over.
func (p place) withoutForeign(numbers []int64) []int64 {
	last := int64(-1)
	return slices.DeleteFunc(numbers, func(n int64) bool {
		foreign := n-last > missesMost && p.isForeign(n)
		if !foreign {
			last = n
		}
		return foreign
	})
}

// beginsFrame reports whether the text begins with the head of a frame as we write it, however long its event is.
func beginsFrame(text []byte) bool {
	at := bytes.Index(text, []byte(frameEvent))
	if at < 0 {
		return false
	}
	_, ok := writtenFrame(append(text[:at+len(frameEvent):at+len(frameEvent)], "0}"...))
	return ok
}
