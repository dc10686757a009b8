package heirlock

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/heirlock/heirlock/process"
)

// The record: one JSON object and a newline, at most maxRecord bytes, in this order of names. docs/record-format.md is
// its specification for other languages.
//
//	{"pid":4242,
//	 "process":{"platform":"linux","bootId":"…","namespace":"pid:[…];time:[…]","startId":"53518"},
//	 "host":"web-1","acquiredAt":"2026-11-30T16:00:00.000Z"[,"machine":"3d12…"],
//	 "evidence":{"acquisition":"0190…"[,"label":"…"][,"pidfdId":"5036"][,"witness":"flock"][,"handedOn":true],
//	             "file":{"fs":"ef53","dev":"64768","ino":"9977906"}[,"machineSource":"machine-id"]}}
const maxRecord = 16 << 10

// Record names the owner of a lock, as read from the lock file or as written to it.
type Record struct {
	PID        int64             // 1…2⁵³−1; above 2³¹−1 it cannot be probed
	Process    *process.Instance // nil if the record measured none: see Legacy
	Host       string            // host name, never empty
	AcquiredAt string            // when the file got its name, RFC 3339 in UTC; information, never evidence
	Machine    string            // machine id, "" if there was none
	Evidence   Evidence          // zero in records that heirlock did not write
	Legacy     bool              // the record has no process field: it is of a generation before process instances

	raw []byte // as read; nil for a record of this process
}

// Evidence is heirlock's own part of a record.
type Evidence struct {
	Acquisition string // UUID of this acquisition, "" if the record has no evidence
	Label       string // the caller's text
	PidfdID     string // decimal, see process.Observation
	Witness     string // "flock", "flock+child", "child", or "" where the filesystem granted no flock
	HandedOn    bool   // a descriptor of the lock file was given to another program
	File        struct {
		FS  string // filesystem type: statfs magic in hexadecimal on Linux, type name on macOS
		Dev string // st_dev, decimal
		Ino string // st_ino, decimal
	}
	MachineSource string // "declared", "machine-id", "platform-uuid", or "" without a machine id
}

// The values of Evidence.Witness.
const (
	witnessFlock      = "flock"       // held by the owner alone
	witnessFlockChild = "flock+child" // held by the owner and by the command it runs
	witnessChild      = "child"       // the owner became the program that holds it
)

// handedOn reports whether work under the lock may outlive the recorded process.
func (e *Evidence) handedOn() bool {
	return e.HandedOn || e.Witness == witnessFlockChild || e.Witness == witnessChild
}

// content is what a lock file holds.
type content string

const (
	ownerless    content = "ownerless"     // not a JSON object with any of the record's names
	unknownOwner content = "unknown owner" // such an object, but no valid owner
	validOwner   content = "owner"
)

// wire is the record with every value still as text. Names are compared exactly.
type wire struct {
	PID        jsontext.Value `json:"pid"`
	Process    jsontext.Value `json:"process"`
	Host       jsontext.Value `json:"host"`
	AcquiredAt jsontext.Value `json:"acquiredAt"`
	Machine    jsontext.Value `json:"machine"`
	Evidence   jsontext.Value `json:"evidence"`
}

func (w *wire) empty() bool {
	return len(w.PID)+len(w.Process)+len(w.Host)+len(w.AcquiredAt)+len(w.Machine)+len(w.Evidence) == 0
}

// parseRecord classifies the whole content of a lock file. The reason says why there is no valid owner.
func parseRecord(data []byte) (Record, content, string) {
	var w wire
	if err := json.Unmarshal(data, &w); err != nil {
		return Record{}, classifyRefused(data), notRead(data, err)
	}
	if jsontext.Value(data).Kind() != '{' || w.empty() {
		return Record{}, ownerless, "the file holds no record"
	}
	r := Record{Legacy: w.Process == nil, raw: bytes.TrimSpace(bytes.Clone(data))}
	var reason string
	if r.PID, reason = parsePID(w.PID); reason != "" {
		return Record{}, unknownOwner, reason
	}
	r.Host, r.AcquiredAt, r.Machine = text(w.Host), text(w.AcquiredAt), text(w.Machine)
	if r.Host == "" || r.AcquiredAt == "" {
		return Record{}, unknownOwner, "host or acquiredAt is not a text"
	}
	r.Process = parseProcess(w.Process, r.PID)
	r.Evidence = parseEvidence(w.Evidence)
	return r, validOwner, ""
}

// notRead says in plain words why no record was read.
func notRead(data []byte, err error) string {
	switch reason := strings.TrimPrefix(err.Error(), "jsontext: "); {
	case len(data) == 0:
		return "the file is empty"
	case len(bytes.Trim(data, "\x00")) == 0:
		return "the file holds nothing but NUL bytes"
	default:
		return "the record is not read: " + reason
	}
}

// classifyRefused tells what strict reading refused: names that occur twice and bad UTF-8 are an owner that is not
// known, never no owner.
func classifyRefused(data []byte) content {
	lenient := []json.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
	var w wire
	if json.Unmarshal(data, &w, lenient...) != nil || jsontext.Value(data).Kind() != '{' || w.empty() {
		return ownerless
	}
	return unknownOwner
}

// parsePID accepts what every writer of the format writes: plain decimal digits. 4242.0 and 4.2e3 are numbers too, but
// nobody writes them, and doubt refuses.
func parsePID(v jsontext.Value) (int64, string) {
	if len(v) == 0 || len(v) > 16 || v[0] < '1' || v[0] > '9' {
		return 0, fmt.Sprintf("pid is not a process number: %.40s", v)
	}
	pid, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || pid > 1<<53-1 {
		return 0, fmt.Sprintf("pid is not a process number: %.40s", v)
	}
	return pid, ""
}

// text is the value of a JSON string, "" for anything else.
func text(v jsontext.Value) string {
	var s string
	if v.Kind() != '"' || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// parseProcess reads the strict object of four texts; nil if it is null or anything else.
func parseProcess(v jsontext.Value, pid int64) *process.Instance {
	if v.Kind() != '{' || int64(int(pid)) != pid {
		return nil
	}
	var p struct {
		Platform  string `json:"platform"`
		BootID    string `json:"bootId"`
		Namespace string `json:"namespace"`
		StartID   string `json:"startId"`
	}
	if json.Unmarshal(v, &p, json.RejectUnknownMembers(true)) != nil {
		return nil
	}
	if p.Platform != "linux" && p.Platform != "darwin" || !decimal(p.StartID) {
		return nil
	}
	i := process.Instance{PID: int(pid), Platform: p.Platform, BootID: p.BootID, Namespace: p.Namespace, StartID: p.StartID}
	if !i.Valid() {
		return nil
	}
	return &i
}

// parseEvidence reads our own part; a value of the wrong type makes all of it absent.
func parseEvidence(v jsontext.Value) Evidence {
	var e struct {
		Acquisition   string `json:"acquisition"`
		Label         string `json:"label"`
		PidfdID       string `json:"pidfdId"`
		Witness       string `json:"witness"`
		HandedOn      bool   `json:"handedOn"`
		MachineSource string `json:"machineSource"`
		File          struct {
			FS  string `json:"fs"`
			Dev string `json:"dev"`
			Ino string `json:"ino"`
		} `json:"file"`
	}
	if v.Kind() != '{' || json.Unmarshal(v, &e) != nil || e.Acquisition == "" {
		return Evidence{}
	}
	out := Evidence{
		Acquisition: e.Acquisition, Label: e.Label, PidfdID: e.PidfdID, Witness: e.Witness,
		HandedOn: e.HandedOn, MachineSource: e.MachineSource,
	}
	out.File.FS, out.File.Dev, out.File.Ino = e.File.FS, e.File.Dev, e.File.Ino
	return out
}

func decimal(s string) bool {
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}

// contentID is how an operator names a file that has no acquisition: by its bytes.
func contentID(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:8])
}

// MarshalJSON returns the record as read, or as this process wrote it.
func (r Record) MarshalJSON() ([]byte, error) {
	if r.raw != nil {
		return r.raw, nil
	}
	return appendRecord(nil, &r)
}

// appendRecord appends the record without a newline. It fails only on text that is not UTF-8.
func appendRecord(b []byte, r *Record) ([]byte, error) {
	w := recordWriter{b: b}
	w.raw(`{"pid":`).number(r.PID)
	if i := r.Process; i != nil {
		w.raw(`,"process":{"platform":`).text(i.Platform).raw(`,"bootId":`).text(i.BootID)
		w.raw(`,"namespace":`).text(i.Namespace).raw(`,"startId":`).text(i.StartID).raw(`}`)
	} else if !r.Legacy {
		w.raw(`,"process":null`)
	}
	w.raw(`,"host":`).text(r.Host).raw(`,"acquiredAt":`).text(r.AcquiredAt)
	w.member(`,"machine":`, r.Machine)
	if e := &r.Evidence; e.Acquisition != "" {
		w.raw(`,"evidence":{"acquisition":`).text(e.Acquisition)
		w.member(`,"label":`, e.Label).member(`,"pidfdId":`, e.PidfdID).member(`,"witness":`, e.Witness)
		if e.HandedOn {
			w.raw(`,"handedOn":true`)
		}
		w.raw(`,"file":{"fs":`).text(e.File.FS).raw(`,"dev":`).text(e.File.Dev).raw(`,"ino":`).text(e.File.Ino).raw(`}`)
		w.member(`,"machineSource":`, e.MachineSource).raw(`}`)
	}
	return append(w.b, '}'), w.err
}

type recordWriter struct {
	b   []byte
	err error
}

func (w *recordWriter) raw(s string) *recordWriter {
	w.b = append(w.b, s...)
	return w
}

func (w *recordWriter) number(n int64) { w.b = strconv.AppendInt(w.b, n, 10) }

func (w *recordWriter) text(s string) *recordWriter {
	b, err := jsontext.AppendQuote(w.b, s)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.b = b
	return w
}

// member writes a member that is left out when it has no text.
func (w *recordWriter) member(name, s string) *recordWriter {
	if s == "" {
		return w
	}
	return w.raw(name).text(s)
}
