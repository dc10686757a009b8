// Package journal is a bounded, ordered, rotating diagnostic journal: evidence that a service leaves about itself and
// that survives its death. Open one and Submit events to it; Read them back, from the live files or after a crash.
//
// One process at a time writes a journal: it stands on the lock <path>.lock of package heirlock, so that a writer that
// is alive but slow never loses it to a second one. Submit never waits and never evicts: an event that does not fit the
// declared bounds is refused with a reason, and counted. What was accepted is on its way to the file; what Flush
// confirmed is in the file, and survives the end of the process; what Sync confirmed survives a power cut.
//
// It is not a log platform: no fsync per event, no upload, no replay, no levels. See package slogjournal for log/slog.
//
// # The format
//
// A journal at path is the files path, path.1 (the newest before it) … path.N-1. Each is a sequence of frames, one JSON
// object and a line feed each:
//
//	{"schemaVersion":1,"epoch":"0b7c8f5e-…","sequence":1,"event":…}
//
// An epoch is one open of the journal (a UUID of version 4); within it sequences count from 1 without a gap.
package journal
