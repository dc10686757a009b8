package journal

// Anomaly is a place that holds no frame.
type Anomaly struct {
	File         string `json:"file"`
	Offset       int64  `json:"offset"` // of the first byte, from 0
	Line         int64  `json:"line"`   // from 1
	Reason       string `json:"reason"`
	Position     string `json:"position"`   // tail (the last line of its file) or interior
	Terminated   bool   `json:"terminated"` // by a line feed
	SkippedBytes int64  `json:"skippedBytes"`
}

// anomalyAt describes a line that is no frame.
func anomalyAt(file string, offset, line, skipped int64, why reason, ended, tail bool) *Anomaly {
	position := "interior"
	if tail {
		position = "tail"
	}
	return &Anomaly{File: file, Offset: offset, Line: line, Reason: reasonNames[why], Position: position, Terminated: ended, SkippedBytes: skipped}
}

// Gap is a jump of the sequence within an epoch: frames are missing, or repeated if Before <= After.
type Gap struct {
	Epoch  string `json:"epoch"`
	After  uint64 `json:"after"`  // the last sequence before it, 0 if the epoch begins behind it
	Before uint64 `json:"before"` // the first sequence behind it
}

// trail follows the sequences of one journal. An epoch begins with 1; only the first frame of the oldest file may be
// any, since the frames before it were rotated away (but not if begun is set before it). An epoch that comes again after
// another counts as a new one: to tell it apart, all of them would have to be remembered.
type trail struct {
	epoch  epochID
	last   uint64
	begun  bool
	epochs int
}

// step takes the next frame, and reports the sequence that the one before it had if it does not follow that.
func (t *trail) step(e *epochID, sequence uint64) (after uint64, gap bool) {
	switch {
	case t.begun && t.epoch == *e:
		after = t.last
	case !t.begun:
		after = sequence - 1
		fallthrough
	default:
		t.epoch, t.begun = *e, true
		t.epochs++
	}
	t.last = sequence
	return after, sequence != after+1
}
