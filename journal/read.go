package journal

import (
	"context"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// ReadOptions say how to read. The zero value reads the files as they are.
type ReadOptions[T any] struct {
	MaxLineBytes int           // a longer line is an anomaly, hard; zero is 16 MiB
	Validate     func(T) error // an event it does not like is an anomaly (invalid-event)
	// Generations reads each file after all the generations that it has, oldest first, and is safe beside a writer that
	// rotates them.
	Generations bool
	// Follow goes on after the last file as it grows and is rotated, until the context ends. It implies Generations.
	Follow bool
}

// Record is what lies at one place of a journal: exactly one of a frame (Anomaly and Gap are nil), an anomaly, or a gap
// before the frame that follows.
type Record[T any] struct {
	File     string // as it was given, or found
	Offset   int64  // of the first byte, from 0
	Line     int64  // from 1
	Bytes    int64  // with the line feed
	Epoch    string
	Sequence uint64
	Event    T
	Raw      jsontext.Value // the frame as it lies, without its line feed; valid until the next record
	Anomaly  *Anomaly
	Gap      *Gap
}

// Anomaly is a place that holds no frame.
type Anomaly struct {
	File         string `json:"file"`
	Offset       int64  `json:"offset"` // of the first byte, from 0
	Line         int64  `json:"line"`   // from 1
	Reason       string `json:"reason"`
	Position     string `json:"position"`   // tail or interior
	Terminated   bool   `json:"terminated"` // by a line feed
	SkippedBytes int64  `json:"skippedBytes"`
}

// Gap is a jump of the sequence within an epoch: frames are missing, or repeated if Before <= After.
type Gap struct {
	Epoch  string `json:"epoch"`
	After  uint64 `json:"after"`  // the last sequence before it
	Before uint64 `json:"before"` // the first sequence behind it
}

// Report counts what files hold.
type Report struct {
	Files        int               `json:"files"`
	Bytes        int64             `json:"bytes"`
	Frames       uint64            `json:"frames"`
	Anomalies    uint64            `json:"anomalies"`
	Reasons      map[string]uint64 `json:"reasons"`
	SkippedBytes int64             `json:"skippedBytes"`
	Gaps         uint64            `json:"gaps"`
	Epochs       int               `json:"epochs"`
	First        *Anomaly          `json:"first"`
	Last         *Anomaly          `json:"last"`
}

// Files lists the retained files of the journal at a path, oldest first. It is advisory: a writer may rotate them.
func Files(path string) ([]string, error) { return nil, errNotYet }

// Read streams what the files hold.
func Read[T any](ctx context.Context, files []string, opts ReadOptions[T]) iter.Seq2[Record[T], error] {
	return nil
}

// Verify reads the files and counts.
func Verify(ctx context.Context, files []string, opts ReadOptions[jsontext.Value]) (Report, error) {
	return Report{}, errNotYet
}
