package journal

import (
	"bytes"
	"strconv"
)

// A frame is one JSON object of exactly four members, in any order, and a line feed:
//
//	schemaVersion   the number 1
//	epoch           a UUID: five groups of 8-4-4-4-12 hex digits; ours are of version 4, in lower case
//	sequence        a whole number from 1 to 2^53-1, in decimal digits only (a program with doubles counts no further)
//	event           any JSON value, up to 10,000 levels deep
//
// We write the members in this order, without blanks. The line is UTF-8; JSON blanks around and inside the object
// (a CR before the LF included) are allowed, a byte-order mark is not. Within event, names may repeat and escapes may
// be lone surrogates: that is data, for the caller to judge. A name of the frame itself that repeats, or that is none
// of the four, makes the line no frame.
const (
	frameStart    = `{"schemaVersion":1,"epoch":"`
	frameSequence = `","sequence":`
	frameEvent    = `,"event":`
	frameEnd      = "}\n"
)

const (
	epochLength   = 36
	maxSequence   = 1<<53 - 1
	digitsMost    = 16 // of maxSequence
	frameHeadMost = len(frameStart) + epochLength + len(frameSequence) + digitsMost + len(frameEvent)
)

// appendFrameStart appends a frame up to its sequence. With appendSequence behind it that is its head; the event and
// frameEnd complete it.
func appendFrameStart(dst []byte, epoch string) []byte {
	return append(append(append(dst, frameStart...), epoch...), frameSequence...)
}

func appendSequence(dst []byte, sequence uint64) []byte {
	return append(strconv.AppendUint(dst, sequence, 10), frameEvent...)
}

// frameBytes is the length of the whole frame, its line feed included, around an event of so many bytes.
func frameBytes(sequence uint64, event int) int {
	digits := 1
	for ; sequence >= 10; sequence /= 10 {
		digits++
	}
	return len(frameStart) + epochLength + len(frameSequence) + digits + len(frameEvent) + event + len(frameEnd)
}

// epochID is the text of a UUID. Two are the same epoch if the texts are the same.
type epochID [epochLength]byte

// frame is what a line says; event lies within the line.
type frame struct {
	epoch    epochID
	sequence uint64
	event    []byte
}

// writtenFrame takes a line apart that has the very head that we write. Whether the event is one JSON
// value, and so the line a frame, is for the caller to find out: everything before and behind it is.
func writtenFrame(line []byte) (f frame, ok bool) {
	const sequenceAt = len(frameStart) + epochLength + len(frameSequence)
	if len(line) < sequenceAt+len("1")+len(frameEvent)+len("0}") || line[len(line)-1] != '}' ||
		string(line[:len(frameStart)]) != frameStart ||
		string(line[len(frameStart)+epochLength:sequenceAt]) != frameSequence || !isEpoch(line[len(frameStart):][:epochLength]) {
		return f, false
	}
	rest := line[sequenceAt:]
	digits := 0
	for digits < digitsMost && rest[digits]-'0' <= 9 {
		digits++
	}
	if f.sequence, ok = parseSequence(rest[:digits]); !ok || !bytes.HasPrefix(rest[digits:], []byte(frameEvent)) {
		return f, false
	}
	f.epoch = epochID(line[len(frameStart):])
	f.event = bytes.Trim(rest[digits+len(frameEvent):len(rest)-1], " \t\r\n")
	return f, true
}

// parseSequence reads plain decimal digits.
func parseSequence(text []byte) (uint64, bool) {
	if len(text) == 0 || len(text) > digitsMost || text[0] == '0' {
		return 0, false
	}
	var n uint64
	for _, c := range text {
		if c -= '0'; c > 9 {
			return 0, false
		}
		n = n*10 + uint64(c)
	}
	return n, n <= maxSequence
}

// isEpoch reports whether the text is a UUID, of whatever version and case.
func isEpoch(text []byte) bool {
	if len(text) != epochLength || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return false
	}
	hex := 0
	for _, c := range text {
		hex += int(hexDigit[c])
	}
	return hex == epochLength-4 // the dashes are none
}

// hexDigit is 1 for each hex digit.
var hexDigit = func() (is [256]uint8) {
	for _, c := range "0123456789abcdefABCDEF" {
		is[c] = 1
	}
	return is
}()
