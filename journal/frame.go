package journal

import "strconv"

const (
	frameStart    = `{"schemaVersion":1,"epoch":"`
	frameSequence = `","sequence":`
	frameEvent    = `,"event":`
	frameEnd      = "}\n"
)

// appendFrameHead appends a frame up to its event; the event and frameEnd complete it.
func appendFrameHead(dst []byte, epoch string, sequence uint64) []byte {
	dst = append(append(append(dst, frameStart...), epoch...), frameSequence...)
	return append(strconv.AppendUint(dst, sequence, 10), frameEvent...)
}
