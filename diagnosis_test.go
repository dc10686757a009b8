package heirlock

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// keysOf returns the names of a JSON object in their order.
func keysOf(t *testing.T, text []byte) []string {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(string(text)))
	if tok, err := dec.Token(); tok != json.Delim('{') {
		t.Fatalf("%v, %v, want an object: %s", tok, err, text)
	}
	var keys []string
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, name.(string))
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

// The names of the object that inspect --json prints, as the design lists them.
var diagnosisKeys = []string{
	"path", "id", "state", "attribution", "liveness", "identity", "witness", "filesystem", "owner", "reclaimableBy", "cause", "explanation",
}

func TestDiagnosisJSON(t *testing.T) {
	full := deadOwner()
	full.reading.record, _, _ = parseRecord([]byte(fullText + "\n"))
	refused := full
	refused.flock = flockAbsent
	mute := deadOwner()
	mute.fs.Name = ""
	for _, c := range []struct {
		name string
		d    Diagnosis
		want string // without the explanation and the guard
	}{
		{"stale", judge("x.lock", full.reading, full.facts),
			`{"path":"x.lock","id":"0190","state":"stale","attribution":"this-machine","liveness":"gone","identity":"pid-gone","witness":"released",` +
				`"filesystem":{"type":"ext2/3/4","scope":"local"},"owner":` + fullText + `,"reclaimableBy":["reclaim-stale","reclaim-released"],"cause":null}`},
		{"unproven", judge("x.lock", refused.reading, refused.facts),
			`{"path":"x.lock","id":"0190","state":"unproven","attribution":"this-machine","liveness":"gone","identity":"pid-gone","witness":"unknown",` +
				`"filesystem":{"type":"ext2/3/4","scope":"local"},"owner":` + fullText + `,"reclaimableBy":[],` +
				`"cause":"the recorded process is gone, but this filesystem grants no kernel lock, and without it nothing is removed"}`},
		{"ownerless", judge("x.lock", reading{content: ownerless, reason: "empty", id: "sha256:00"}, full.facts),
			`{"path":"x.lock","id":"sha256:00","state":"ownerless","attribution":"unattributable","liveness":"not-probed","identity":null,"witness":"unknown",` +
				`"filesystem":{"type":"ext2/3/4","scope":"local"},"owner":null,"reclaimableBy":[],"cause":"empty"}`},
		{"free", judge("x.lock", reading{free: true}, mute.facts),
			`{"path":"x.lock","id":null,"state":"free","attribution":"unattributable","liveness":"not-probed","identity":null,"witness":"unknown",` +
				`"filesystem":{"type":"","scope":"local"},"owner":null,"reclaimableBy":[],"cause":null}`},
	} {
		text, err := json.Marshal(c.d)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got, want := keysOf(t, text), append(diagnosisKeys[:len(diagnosisKeys):len(diagnosisKeys)], "guard"); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: keys %q, want %q", c.name, got, want)
		}
		var got, want map[string]any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		var lines []any
		for _, line := range c.d.Explanation() {
			lines = append(lines, line)
		}
		want["explanation"], want["guard"] = lines, nil
		if !reflect.DeepEqual(got, want) || len(lines) == 0 {
			t.Errorf("%s:\n got %v\nwant %v", c.name, got, want)
		}
	}
}

// The guard is the same object, without a guard of its own, even if somebody put one there.
func TestGuardJSON(t *testing.T) {
	s := deadOwner()
	d := judge("x.lock", s.reading, s.facts)
	guard := judge("x.lock.reclaim", s.reading, s.facts)
	nested := judge("x.lock.reclaim.reclaim", s.reading, s.facts)
	d.Guard, guard.Guard = &guard, &nested
	for _, v := range []any{d, &d} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Guard json.RawMessage }
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if keys := keysOf(t, got.Guard); !reflect.DeepEqual(keys, diagnosisKeys) {
			t.Errorf("keys %q, want %q", keys, diagnosisKeys)
		}
		if !strings.Contains(string(got.Guard), `"path":"x.lock.reclaim"`) || strings.Contains(string(text), "reclaim.reclaim") {
			t.Errorf("guard %s", got.Guard)
		}
	}
}
