package journal

import "slices"

// What the writer tells the ledger, and asks it.

func (l *ledger) isDue() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.due
}

// doze lets the writer sleep without a timer, unless there is something to do.
func (l *ledger) doze() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dormant = l.st.PendingItems == 0 && !l.due
	return l.dormant
}

// begin says up to which sequence the writer shall settle now, if there is something to do: anything at first, then only
// what must not wait for company.
func (l *ledger) begin(again bool) (upto uint64, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	more = l.due || l.st.PendingItems > 0 && (!again || l.isEnough())
	l.due = false
	return l.st.LastAccepted, more
}

func (l *ledger) isPending(upto uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.st.LastSettled < upto
}

// wantsSync reports whether somebody waits for a sync of what is settled by now.
func (l *ledger) wantsSync() (settled uint64, wanted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	settled = l.st.LastSettled
	return settled, slices.ContainsFunc(l.marks, func(m *boundary) bool { return m.sync && m.upto <= settled })
}

// synced lets those go who wait for a sync of what was settled when it began.
func (l *ledger) synced(settled uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marks = slices.DeleteFunc(l.marks, func(m *boundary) bool {
		if !m.sync || m.upto > settled {
			return false
		}
		close(m.reached)
		return true
	})
}

// oldest is the window of the pending frames.
func (l *ledger) oldest(pieces [][]byte, most int64) [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pending.window(pieces, most)
}

// note takes over what happened to the files.
func (l *ledger) note(found whereabouts, err error, s *shelf) {
	if found == (whereabouts{}) && err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if found.displaced {
		l.st.Displaced++
	}
	if found.truncated {
		l.st.Truncated++
	}
	if found.rotated {
		l.st.Rotations++
	}
	if err != nil {
		l.st.RotationFailures++
	}
	l.files(s)
}

func (l *ledger) files(s *shelf) {
	l.st.CurrentBytes, l.st.RetainedFiles, l.st.OversizedFiles = s.size, s.retained, s.oversized
}

// launch says how many frames are in flight.
func (l *ledger) launch(frames int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.st.InFlight = frames
}

// settle takes out what was written.
func (l *ledger) settle(bytes int64, frames int, current int64, torn bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending.drop(bytes)
	l.st.PendingItems -= frames
	l.st.InFlight = 0
	l.st.Written += uint64(frames)
	l.st.LastWritten += uint64(frames)
	l.st.LastSettled = l.st.LastWritten
	l.st.CurrentBytes = current
	if torn {
		l.st.PartialTails++
	}
	l.grant()
	l.reach()
}

// close is the end of the writer.
func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.st.State == stateDraining {
		l.st.State = stateClosed
	}
	l.reach()
}
