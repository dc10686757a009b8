package journal

import "github.com/heirlock/heirlock"

// Status is one consistent observation of a journal. At every moment received = accepted + refused and
// accepted = written + failed + pending. Its JSON has the names of its fields.
type Status struct {
	State  string     `json:"state"` // open, draining, closed or failed
	Epoch  string     `json:"epoch"`
	Bounds bounds     `json:"bounds"`
	Lock   lockStatus `json:"lock"`

	Received         uint64   `json:"received"` // calls of Submit and SubmitWait that have been decided
	Accepted         uint64   `json:"accepted"`
	Refused          uint64   `json:"refused"`
	RefusalsByReason refusals `json:"refusalsByReason"`
	Written          uint64   `json:"written"` // frames whose append succeeded
	Failed           uint64   `json:"failed"`  // accepted frames that will never be in the file

	PendingItems int   `json:"pendingItems"` // queued and in flight
	PendingBytes int64 `json:"pendingBytes"` // of their frames, with line feeds
	InFlight     int   `json:"inFlight"`     // frames of the append that runs now

	Rotations        uint64 `json:"rotations"`
	RotationFailures uint64 `json:"rotationFailures"`
	PartialTails     uint64 `json:"partialTails"`   // torn tails found at open and torn writes that could not be cut back
	Displaced        uint64 `json:"displaced"`      // times the active file was found renamed, removed or replaced
	Truncated        uint64 `json:"truncated"`      // times the active file was found shorter than it was written
	CurrentBytes     int64  `json:"currentBytes"`   // of the active file
	RetainedFiles    int    `json:"retainedFiles"`  // the active file and its generations
	OversizedFiles   int    `json:"oversizedFiles"` // of them, those over MaxFileBytes: a larger bound of before left them
	RemovedFiles     int    `json:"removedFiles"`   // generations beyond MaxFiles that the opening removed

	Recovery Report `json:"recovery"` // what the retained files held when the journal was opened

	LastAccepted uint64   `json:"lastAccepted"` // sequences, 0 for none
	LastWritten  uint64   `json:"lastWritten"`
	LastSettled  uint64   `json:"lastSettled"` // everything up to it is written or failed
	LastFailure  *failure `json:"lastFailure"` // nil while nothing has failed
}

type (
	// bounds are what Options declare: the bounds the journal was opened with.
	bounds struct {
		MaxEventBytes   int   `json:"maxEventBytes"`
		MaxPendingItems int   `json:"maxPendingItems"`
		MaxPendingBytes int64 `json:"maxPendingBytes"`
		MaxFileBytes    int64 `json:"maxFileBytes"`
		MaxFiles        int   `json:"maxFiles"`
	}
	// lockStatus says under which policy the lock was taken, and from whom.
	lockStatus struct {
		Policy         heirlock.Policy     `json:"policy"`
		ReclaimedStale bool                `json:"reclaimedStale"`
		Evidence       *heirlock.Diagnosis `json:"evidence"` // of the owner that was proven gone, or nil
	}
	// refusals counts refused events by their reason.
	refusals struct {
		Failed       uint64 `json:"failed"`
		Closed       uint64 `json:"closed"`
		Invalid      uint64 `json:"invalid"`
		Oversized    uint64 `json:"oversized"`
		ItemCapacity uint64 `json:"itemCapacity"`
		ByteCapacity uint64 `json:"byteCapacity"`
	}
	// failure is the failure that ended a journal.
	failure struct {
		Phase    string `json:"phase"`    // write, rotation, close or lock
		Sequence uint64 `json:"sequence"` // of the first frame that failed with it, 0 for none
		Cause    string `json:"cause"`
	}
)
