package heirlock

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/heirlock/heirlock/process"
)

// fullRecord has a different value in every field, so that no two can be taken for each other.
func fullRecord() Record {
	r := Record{
		PID:        4242,
		Process:    &process.Instance{PID: 4242, Platform: "linux", BootID: "b2d2", Namespace: "pid:[4026531836];time:[4026531834]", StartID: "53518"},
		Host:       "web-1",
		AcquiredAt: "2026-11-30T16:00:00.000Z",
		Machine:    "3d12",
		Evidence:   Evidence{Acquisition: "0190", Label: "nightly", PidfdID: "5036", Witness: "flock+child", HandedOn: true, MachineSource: "machine-id"},
	}
	r.Evidence.File.FS, r.Evidence.File.Dev, r.Evidence.File.Ino = "ef53", "64768", "9977906"
	return r
}

const (
	instanceText = `{"platform":"linux","bootId":"b2d2","namespace":"pid:[4026531836];time:[4026531834]","startId":"53518"}`
	evidenceText = `{"acquisition":"0190","label":"nightly","pidfdId":"5036","witness":"flock+child","handedOn":true,` +
		`"file":{"fs":"ef53","dev":"64768","ino":"9977906"},"machineSource":"machine-id"}`
	fullText = `{"pid":4242,"process":` + instanceText + `,"host":"web-1","acquiredAt":"2026-11-30T16:00:00.000Z","machine":"3d12","evidence":` + evidenceText + `}`
)

// recordText writes a record whose members are as given, "" leaves one out.
func recordText(pid, instance, host, at, machine, evidence string) string {
	var members []string
	for _, m := range [][2]string{{"pid", pid}, {"process", instance}, {"host", host}, {"acquiredAt", at}, {"machine", machine}, {"evidence", evidence}} {
		if m[1] != "" {
			members = append(members, `"`+m[0]+`":`+m[1])
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// The bytes of a record are a format; these are all its shapes, in the order that other programs write.
func TestAppendRecord(t *testing.T) {
	change := func(do func(*Record)) Record {
		r := fullRecord()
		do(&r)
		return r
	}
	for _, c := range []struct {
		name string
		rec  Record
		want string
	}{
		{"full", fullRecord(), fullText},
		{"no machine id", change(func(r *Record) { r.Machine, r.Evidence.MachineSource = "", "" }),
			`{"pid":4242,"process":` + instanceText + `,"host":"web-1","acquiredAt":"2026-11-30T16:00:00.000Z","evidence":` +
				strings.Replace(evidenceText, `,"machineSource":"machine-id"`, "", 1) + `}`},
		{"bare evidence", change(func(r *Record) {
			file := r.Evidence.File
			r.Evidence = Evidence{Acquisition: "0190", File: file}
		}), strings.Replace(fullText, evidenceText, `{"acquisition":"0190","file":{"fs":"ef53","dev":"64768","ino":"9977906"}}`, 1)},
		{"of theirs", change(func(r *Record) { r.Evidence = Evidence{} }), strings.Replace(fullText, `,"evidence":`+evidenceText, "", 1)},
		{"not measured", change(func(r *Record) { r.Process, r.Evidence = nil, Evidence{} }),
			`{"pid":4242,"process":null,"host":"web-1","acquiredAt":"2026-11-30T16:00:00.000Z","machine":"3d12"}`},
		{"legacy", change(func(r *Record) { r.Process, r.Legacy, r.Evidence = nil, true, Evidence{} }),
			`{"pid":4242,"host":"web-1","acquiredAt":"2026-11-30T16:00:00.000Z","machine":"3d12"}`},
		{"escapes, but not for HTML", change(func(r *Record) { r.Evidence, r.Machine, r.Host = Evidence{}, "", "<é&\"\\\n\x01>" }),
			`{"pid":4242,"process":` + instanceText + `,"host":"<é&\"\\\n\u0001>","acquiredAt":"2026-11-30T16:00:00.000Z"}`},
	} {
		got, err := appendRecord([]byte("before "), &c.rec)
		if string(got) != "before "+c.want || err != nil {
			t.Errorf("%s: %v\n got %s\nwant %s", c.name, err, got, c.want)
		}
		back, kind, reason := parseRecord(got[len("before "):])
		if back.raw = nil; kind != validOwner || reason != "" || !reflect.DeepEqual(back, c.rec) {
			t.Errorf("%s read back: %s %q\n got %+v\nwant %+v", c.name, kind, reason, back, c.rec)
		}
	}
	for _, field := range []func(*Record) *string{
		func(r *Record) *string { return &r.Host }, func(r *Record) *string { return &r.Evidence.Label },
		func(r *Record) *string { return &r.Machine }, func(r *Record) *string { return &r.Process.Namespace },
	} {
		r := fullRecord()
		*field(&r) = "\xff"
		if _, err := appendRecord(nil, &r); err == nil {
			t.Error("text that is not UTF-8 was written")
		}
	}
}

// A record prints as it was read, members that we do not know included, and as we wrote it otherwise.
func TestRecordJSON(t *testing.T) {
	const text = `{"extra":[1,{"a":2}],"acquiredAt":"at","host":"h","pid":7}`
	for _, c := range []struct {
		rec  func() Record
		want string
	}{
		{func() Record { r, _, _ := parseRecord([]byte(" " + text + "\n")); return r }, text},
		{fullRecord, fullText},
	} {
		if got, err := json.Marshal(c.rec()); string(got) != c.want || err != nil {
			t.Errorf("%v\n got %s\nwant %s", err, got, c.want)
		}
	}
	data := []byte(text)
	r, _, _ := parseRecord(data)
	clear(data)
	if got, err := json.Marshal(r); string(got) != text {
		t.Errorf("the record changed with the buffer it was read from: %s, %v", got, err)
	}
}

// What else a reader must accept.
func TestParseRecordAccepts(t *testing.T) {
	full := fullRecord()
	theirs := fullRecord()
	theirs.Evidence = Evidence{}
	nothing := theirs
	nothing.Process = nil
	anonymous := theirs
	anonymous.Machine = ""
	legacy := nothing
	legacy.Legacy, legacy.Machine = true, ""
	bigger := func(pid int64) Record {
		r := theirs
		i := *r.Process
		i.PID = int(pid)
		if r.PID, r.Process = pid, &i; int64(i.PID) != pid {
			r.Process = nil // on a platform of 32 bits
		}
		return r
	}
	const host, at, machine = `"web-1"`, `"2026-11-30T16:00:00.000Z"`, `"3d12"`
	with := func(instance, machine, evidence string) string {
		return recordText("4242", instance, host, at, machine, evidence)
	}
	processes := func(from, to string) string { return with(strings.Replace(instanceText, from, to, 1), machine, "") }
	evidences := func(from, to string) string {
		return with(instanceText, machine, strings.Replace(evidenceText, from, to, 1))
	}
	for _, c := range []struct {
		name, text string
		want       Record
	}{
		{"no LF", fullText, full},
		{"LF", fullText + "\n", full},
		{"CRLF and blanks around", " \t\r\n" + fullText + "\r\n ", full},
		{"blanks within", strings.ReplaceAll(fullText, `,"`, " ,\n\t\""), full},
		{"another order", `{"evidence":` + evidenceText + `,"machine":"3d12","acquiredAt":` + at + `,"host":"web-1","process":` + instanceText + `,"pid":4242}`, full},
		{"another order of the process", with(`{"startId":"53518","namespace":"pid:[4026531836];time:[4026531834]","bootId":"b2d2","platform":"linux"}`, machine, ""), theirs},
		{"extra members", `{"x":1,"Pid":1,"PID":2,"Process":3,"HOST":4,` + fullText[1:len(fullText)-1] + `,"y":{"pid":3},"z":[null]}`, full},
		{"extra members of the evidence", evidences(`"label"`, `"Acquisition":"x","more":{"a":1},"label"`), full},
		{"extra members of the file", evidences(`"fs"`, `"FS":"x","more":1,"fs"`), full},
		{"escaped names", strings.Replace(fullText, `"pid"`, `"\u0070id"`, 1), full},
		{"escaped texts", strings.Replace(fullText, `web-1`, `web\u002d1`, 1), full},
		{"of theirs", with(instanceText, machine, ""), theirs},
		{"of theirs, no machine", with(instanceText, "", ""), anonymous},

		{"legacy", recordText("4242", "", host, at, "", ""), legacy},
		{"legacy, process by another case", strings.Replace(recordText("4242", instanceText, host, at, "", ""), "process", "Process", 1), legacy},
		{"process null", with("null", machine, ""), nothing},
		{"process a text", with(`"x"`, machine, ""), nothing},
		{"process a number", with("4242", machine, ""), nothing},
		{"process a list", with("["+instanceText+"]", machine, ""), nothing},
		{"process empty", with("{}", machine, ""), nothing},
		{"process with another key", processes(`{`, `{"x":1,`), nothing},
		{"process with a key in another case", processes(`"bootId"`, `"bootID"`), nothing},
		{"process with a number", processes(`"53518"`, `53518`), nothing},
		{"process with null", processes(`"53518"`, `null`), nothing},
		{"process with a sign", processes(`"53518"`, `"+53518"`), nothing},
		{"process with a fraction", processes(`"53518"`, `"53518.0"`), nothing},
		{"process with blanks", processes(`"53518"`, `" 53518"`), nothing},
		{"process without start", processes(`,"startId":"53518"`, ``), nothing},
		{"process without boot", processes(`"bootId":"b2d2",`, ``), nothing},
		{"process without namespace", processes(`"namespace":"pid:[4026531836];time:[4026531834]",`, ``), nothing},
		{"process without platform", processes(`"platform":"linux",`, ``), nothing},
		{"process with empty start", processes(`"53518"`, `""`), nothing},
		{"process with empty boot", processes(`"b2d2"`, `""`), nothing},
		{"process with empty namespace", processes(`"pid:[4026531836];time:[4026531834]"`, `""`), nothing},
		{"process with empty platform", processes(`"linux"`, `""`), nothing},
		{"process of another platform", processes(`"linux"`, `"freebsd"`), nothing},
		{"process of Linux in another case", processes(`"linux"`, `"Linux"`), nothing},

		{"machine null", with(instanceText, "null", ""), anonymous},
		{"machine a number", with(instanceText, "5", ""), anonymous},
		{"machine an object", with(instanceText, `{"id":"3d12"}`, ""), anonymous},
		{"machine empty", with(instanceText, `""`, ""), anonymous},

		{"evidence null", with(instanceText, machine, "null"), theirs},
		{"evidence a text", with(instanceText, machine, `"x"`), theirs},
		{"evidence a list", with(instanceText, machine, "["+evidenceText+"]"), theirs},
		{"evidence empty", with(instanceText, machine, "{}"), theirs},
		{"evidence without acquisition", evidences(`"acquisition":"0190",`, ``), theirs},
		{"evidence with empty acquisition", evidences(`"0190"`, `""`), theirs},
		{"evidence with a number", evidences(`"5036"`, `5036`), theirs},
		{"evidence with a text for a truth", evidences(`true`, `"true"`), theirs},
		{"evidence with a number in the file", evidences(`"9977906"`, `9977906`), theirs},
		{"evidence with a text as file", evidences(`{"fs":"ef53","dev":"64768","ino":"9977906"}`, `"ef53"`), theirs},

		{"pid 1", recordText("1", instanceText, host, at, machine, ""), bigger(1)},
		{"pid 2³¹−1", recordText("2147483647", instanceText, host, at, machine, ""), bigger(1<<31 - 1)},
		{"pid 2³¹", recordText("2147483648", instanceText, host, at, machine, ""), bigger(1 << 31)},
		{"pid 2⁵³−1", recordText("9007199254740991", instanceText, host, at, machine, ""), bigger(1<<53 - 1)},
	} {
		got, kind, reason := parseRecord([]byte(c.text))
		if string(got.raw) != strings.Trim(c.text, " \t\r\n") {
			t.Errorf("%s: raw %q", c.name, got.raw)
		}
		if got.raw = nil; kind != validOwner || reason != "" || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %s %q\n got %+v %+v\nwant %+v %+v", c.name, kind, reason, got, got.Process, c.want, c.want.Process)
		}
	}
}

// An object that carries some of the record's names and names no valid owner is an owner that we do not know. What
// carries none is no record, and only that is ownerless.
func TestParseRecordRefuses(t *testing.T) {
	pid := func(text string) string { return recordText(text, instanceText, `"h"`, `"at"`, "", "") }
	twice := func(from, to string) string { return strings.Replace(fullText, from, to, 1) }
	unknown := map[string]string{
		"pid 0":               pid("0"),
		"pid -0":              pid("-0"),
		"pid below zero":      pid("-4242"),
		"pid a fraction":      pid("4242.5"),
		"pid a whole float":   pid("4242.0"),
		"pid with exponent":   pid("4e3"),
		"pid a text":          pid(`"4242"`),
		"pid null":            pid("null"),
		"pid true":            pid("true"),
		"pid a list":          pid("[4242]"),
		"pid 2⁵³":             pid("9007199254740992"),
		"pid 2⁶⁴+1":           pid("18446744073709551617"),
		"pid of 40 digits":    pid(strings.Repeat("1", 40)),
		"pid missing":         pid(""),
		"host missing":        recordText("1", instanceText, "", `"at"`, "", ""),
		"host empty":          recordText("1", instanceText, `""`, `"at"`, "", ""),
		"host null":           recordText("1", instanceText, "null", `"at"`, "", ""),
		"host a number":       recordText("1", instanceText, "5", `"at"`, "", ""),
		"acquiredAt missing":  recordText("1", instanceText, `"h"`, "", "", ""),
		"acquiredAt empty":    recordText("1", instanceText, `"h"`, `""`, "", ""),
		"acquiredAt a number": recordText("1", instanceText, `"h"`, "1700000000", "", ""),
		"only a pid":          `{"pid":null}`,
		"only a process":      `{"process":null}`,
		"only a host":         `{"host":""}`,
		"only acquiredAt":     `{"acquiredAt":0}`,
		"only a machine":      `{"machine":"m"}`,
		"only evidence":       `{"evidence":{}}`,
		"host in other case":  strings.Replace(fullText, `"host"`, `"Host"`, 1),
		"pid in other case":   strings.Replace(fullText, `"pid"`, `"PID"`, 1),

		"pid twice":                     twice(`"pid":4242`, `"pid":4242,"pid":4242`),
		"pid twice, once escaped":       twice(`"pid":4242`, `"pid":4242,"p\u0069d":4242`),
		"process twice":                 twice(`"process":`, `"process":null,"process":`),
		"evidence twice":                twice(`"evidence":`, `"evidence":null,"evidence":`),
		"an extra name twice":           twice(`{"pid"`, `{"x":1,"x":1,"pid"`),
		"twice in an extra object":      twice(`{"pid"`, `{"x":[{"y":1,"y":1}],"pid"`),
		"twice in process":              twice(`"bootId"`, `"bootId":"b2d2","bootId"`),
		"an extra name twice in it":     twice(`"bootId"`, `"x":1,"x":1,"bootId"`),
		"twice in evidence":             twice(`"label"`, `"label":"nightly","label"`),
		"an extra name twice in that":   twice(`"label"`, `"x":1,"x":1,"label"`),
		"twice in file":                 twice(`"ino"`, `"ino":"1","ino"`),
		"not UTF-8 in the host":         twice(`web-1`, "web\xff"),
		"not UTF-8 in an extra name":    twice(`{"pid"`, "{\"\xff\":1,\"pid\""),
		"a lone surrogate in the label": twice(`nightly`, `\ud800`),
	}
	none := map[string]string{
		"empty": "", "LF": "\n", "NUL": "\x00", "many NULs": strings.Repeat("\x00", 512), "garbage": "hello", "a pid": "4242\n",
		"null": "null", "true": "true", "a text": `"pid"`, "list": "[]", "list of a record": "[" + fullText + "]",
		"empty object": "{}", "other names": `{"a":1,"b":{"pid":4242}}`, "names in other case": `{"PID":4242,"Host":"h","AcquiredAt":"at"}`,
		"empty name": `{"":1}`, "other names twice": `{"a":1,"a":2}`,
		"byte-order mark": "\ufeff" + fullText, "UTF-16": "\xff\xfe{\x00}\x00",
		"truncated": fullText[:len(fullText)-1], "truncated in a text": fullText[:60], "half a name": `{"pi`,
		"two records": fullText + "\n" + fullText + "\n", "something behind": fullText + "x", "NUL behind": fullText + "\x00",
		"comma at the end": strings.Replace(fullText, `"}}`, `"},}`, 1), "single quotes": `{'pid':1}`, "bare names": `{pid:1}`,
		"comment": "/**/" + fullText, "number with leading zero": strings.Replace(fullText, "4242", "04242", 1),
		"NaN": strings.Replace(fullText, "4242", "NaN", 1), "raw newline in a text": strings.Replace(fullText, "web-1", "web\n1", 1),
	}
	for want, texts := range map[content]map[string]string{unknownOwner: unknown, ownerless: none} {
		for name, text := range texts {
			got, kind, reason := parseRecord([]byte(text))
			if kind != want || reason == "" || !reflect.DeepEqual(got, Record{}) {
				t.Errorf("%s: %s %q %+v, want %s, a reason and no record", name, kind, reason, got, want)
			}
		}
	}
}

func TestContentID(t *testing.T) {
	// printf '' | sha256sum; printf 'hello' | sha256sum
	for text, want := range map[string]string{"": "sha256:e3b0c44298fc1c14", "hello": "sha256:2cf24dba5fb0a30e"} {
		if got := contentID([]byte(text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// Nothing makes the reader panic; an owner that it finds is whole, and is the same when it is written and read again.
func FuzzParseRecord(f *testing.F) {
	seeds, err := filepath.Glob("testdata/records/*")
	if err != nil || len(seeds) == 0 {
		f.Fatalf("no seeds in testdata/records (%v)", err)
	}
	for _, name := range seeds {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, kind, reason := parseRecord(data)
		if kind != validOwner {
			if reason == "" || kind != ownerless && kind != unknownOwner || !reflect.DeepEqual(r, Record{}) {
				t.Errorf("%q %q %+v", kind, reason, r)
			}
			return
		}
		if reason != "" || r.PID < 1 || r.PID > 1<<53-1 || r.Host == "" || r.AcquiredAt == "" || r.Legacy && r.Process != nil ||
			r.Process != nil && (!r.Process.Valid() || int64(r.Process.PID) != r.PID) {
			t.Errorf("accepted %+v %+v (%s)", r, r.Process, reason)
		}
		if text, err := json.Marshal(r); err != nil || !json.Valid(text) {
			t.Errorf("printed as %q, %v", text, err)
		}
		r.raw = nil
		text, err := appendRecord(nil, &r)
		if err != nil {
			t.Fatalf("%+v is not written again: %v", r, err)
		}
		back, kind, reason := parseRecord(text)
		if back.raw = nil; kind != validOwner || !reflect.DeepEqual(back, r) {
			t.Errorf("%s %q\n got %+v\nwant %+v\nfrom %s", kind, reason, back, r, text)
		}
	})
}
