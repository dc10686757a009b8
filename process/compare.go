package process

import "fmt"

// Identity is what a comparison of a recorded instance with an observation said.
type Identity string

// The identities. DifferentBoot, ReusedPID and PIDGone prove the recorded instance gone; Matched proves it alive;
// Unavailable proves nothing. Legacy stands for a record without instance evidence, which Compare never sees.
const (
	Matched       Identity = "matched"
	DifferentBoot Identity = "different-boot"
	ReusedPID     Identity = "reused-pid"
	PIDGone       Identity = "pid-gone"
	Legacy        Identity = "legacy"
	Unavailable   Identity = "unavailable"
)

// Liveness is whether a recorded owner still runs.
type Liveness string

// The livenesses. NotProbed is the answer wherever the evidence does not reach.
const (
	Alive     Liveness = "alive"
	Gone      Liveness = "gone"
	NotProbed Liveness = "not-probed"
)

// Liveness is what an identity proves.
func (i Identity) Liveness() Liveness {
	switch i {
	case Matched:
		return Alive
	case DifferentBoot, ReusedPID, PIDGone:
		return Gone
	}
	return NotProbed
}

// Compare judges a recorded instance, and its recorded pidfd id ("" if none was recorded), by what was measured of the
// calling process (own) and observed at the recorded number (seen, with the error of [Observe]). It is pure; the
// reason says why an identity is Unavailable and is empty otherwise.
//
// Seen is not looked at where the boots or the namespaces differ: the number means nothing here then.
func Compare(recorded Instance, pidfdID string, own Instance, seen Observation, seenErr error) (id Identity, reason string) {
	switch {
	case !recorded.Valid():
		return Unavailable, "the record names no process instance"
	case !own.Valid():
		return Unavailable, "this process could not measure itself"
	case recorded.Platform != own.Platform:
		return Unavailable, fmt.Sprintf("the record is of platform %s, this is %s", recorded.Platform, own.Platform)
	case recorded.BootID != own.BootID:
		return DifferentBoot, ""
	case recorded.Namespace != own.Namespace:
		return Unavailable, fmt.Sprintf("the namespaces differ: recorded %s, here %s", recorded.Namespace, own.Namespace)
	}
	switch seen.Presence {
	case Absent, Exited:
		return PIDGone, ""
	case Running:
		return compareRunning(recorded, pidfdID, seen, seenErr)
	}
	return Unavailable, fmt.Sprintf("process %d could not be observed: %v", recorded.PID, seenErr)
}

// compareRunning tells the recorded process from a stranger with its number. Two pidfd ids decide where both are known:
// start times have a resolution of one clock tick, pidfd ids are never used twice.
func compareRunning(recorded Instance, pidfdID string, seen Observation, seenErr error) (Identity, string) {
	bothIDs := pidfdID != "" && seen.PidfdID != ""
	start := seen.Instance.StartID
	switch {
	case bothIDs && pidfdID != seen.PidfdID:
		return ReusedPID, ""
	case start == "":
		return Unavailable, fmt.Sprintf("the start of process %d could not be read: %v", recorded.PID, seenErr)
	case start == recorded.StartID:
		return Matched, ""
	case bothIDs:
		return Unavailable, fmt.Sprintf("contradiction: one pidfd id (%s), two starts (recorded %s, seen %s)", pidfdID, recorded.StartID, start)
	}
	return ReusedPID, ""
}
