package heirlock

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/heirlock/heirlock/internal/kernel"
)

// Waiters of one process stand in line for each lock, first in, first out, and only the first contends with other
// processes. A line is found by the inode of the parent directory and the name in it, so that two paths to one file meet.

type lineKey struct {
	dev, ino uint64
	name     string
}

// place is one waiter's place in a line.
type place struct {
	key  lineKey
	turn chan struct{} // closed when the waiter is the first
}

var (
	linesMu sync.Mutex
	lines   = map[lineKey][]*place{}
	inLine  atomic.Int64 // waiters in all lines: while there are none, nobody needs to look
)

func keyOf(dir kernel.Dir, name string) (lineKey, error) {
	st, err := dir.Own()
	return lineKey{st.Dev, st.Ino, name}, err
}

// hasLine reports whether somebody of this process waits in the line already.
func hasLine(key lineKey) bool {
	linesMu.Lock()
	defer linesMu.Unlock()
	return len(lines[key]) > 0
}

// standInLine takes the last place.
func standInLine(key lineKey) *place {
	p := &place{key: key, turn: make(chan struct{})}
	linesMu.Lock()
	defer linesMu.Unlock()
	inLine.Add(1)
	lines[key] = append(lines[key], p)
	if len(lines[key]) == 1 {
		close(p.turn)
	}
	return p
}

// await waits for the turn, or until the context ends.
func (p *place) await(ctx context.Context) (waited, turn bool) {
	select {
	case <-p.turn:
		return false, true
	default:
	}
	select {
	case <-p.turn:
		return true, true
	case <-ctx.Done():
		return true, false
	}
}

// leave gives the place up, wherever it stands. If it was the first, the next has its turn.
func (p *place) leave() {
	linesMu.Lock()
	defer linesMu.Unlock()
	line := lines[p.key]
	at := slices.Index(line, p)
	line = slices.Delete(line, at, at+1)
	inLine.Add(-1)
	if len(line) == 0 {
		delete(lines, p.key)
		return
	}
	lines[p.key] = line
	if at == 0 {
		close(line[0].turn)
	}
}
