package heirlock

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heirlock/heirlock/internal/kernel"
	"github.com/heirlock/heirlock/process"
)

// testdata/vectors is for implementations in any language; docs/vectors.md says what each name means. The expectations
// were written from the design, so a difference is a question to it and to the code, never a reason to copy the answer.

type vectorFile struct {
	Format  int      `json:"format"`
	About   string   `json:"about"`
	Facts   any      `json:"facts"`
	Vectors []vector `json:"vectors"`
}

type vector struct {
	Name   string                     `json:"name"`
	Rule   string                     `json:"rule"`
	At     vectorAt                   `json:"at"`
	Facts  map[string]json.RawMessage `json:"facts"`
	Expect vectorExpect               `json:"expect"`
}

type vectorAt struct {
	Kind   string  `json:"kind"`
	Text   *string `json:"text"`
	Base64 []byte  `json:"base64"`
}

type vectorFacts struct {
	Own *struct {
		Platform  string `json:"platform"`
		BootID    string `json:"bootId"`
		Namespace string `json:"namespace"`
	} `json:"own"`
	Host          string  `json:"host"`
	Machine       *string `json:"machine"`
	MachineSource *string `json:"machineSource"`
	Filesystem    struct {
		Type  string `json:"type"`
		Scope string `json:"scope"`
	} `json:"filesystem"`
	File struct {
		Dev string `json:"dev"`
		Ino string `json:"ino"`
	} `json:"file"`
	Flock string `json:"flock"`
	Seen  *struct {
		Presence string  `json:"presence"`
		StartID  *string `json:"startId"`
		PidfdID  *string `json:"pidfdId"`
	} `json:"seen"`
}

type vectorExpect struct {
	State         string           `json:"state"`
	Attribution   string           `json:"attribution"`
	Liveness      process.Liveness `json:"liveness"`
	Identity      *string          `json:"identity"`
	Witness       string           `json:"witness"`
	ReclaimableBy []Policy         `json:"reclaimableBy"`
	Cause         bool             `json:"cause"`
	ID            *string          `json:"id"`
}

func TestVectors(t *testing.T) {
	names, err := filepath.Glob("testdata/vectors/*.json")
	if err != nil || len(names) < 7 {
		t.Fatalf("%d files of vectors (%v)", len(names), err)
	}
	met := map[string]int{}
	total := 0
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var f vectorFile
		strictly(t, data, &f)
		if f.Format != 1 || f.About == "" {
			t.Errorf("%s: format %d, about %q", name, f.Format, f.About)
		}
		for _, v := range f.Vectors {
			total++
			v.check(t, f.Facts, filepath.Base(name))
			v.Expect.count(met)
		}
	}
	if total < 330 {
		t.Errorf("%d vectors, want 330 at least", total)
	}
	for _, want := range strings.Fields(`state:free state:held state:stale state:unproven state:ownerless
		attribution:this-machine attribution:another-machine attribution:unattributable liveness:alive liveness:gone liveness:not-probed
		identity:matched identity:different-boot identity:reused-pid identity:pid-gone identity:legacy identity:unavailable identity:null
		witness:held witness:released witness:unknown by: by:reclaim-stale,reclaim-released by:reclaim-released`) {
		if met[want] == 0 {
			t.Errorf("no vector expects %s", want)
		}
	}
}

func strictly(t *testing.T, data []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatal(err)
	}
}

// count notes which verdicts a vector expects.
func (e *vectorExpect) count(met map[string]int) {
	by := make([]string, len(e.ReclaimableBy))
	for i, p := range e.ReclaimableBy {
		by[i] = string(p)
	}
	for _, s := range []string{"state:" + e.State, "attribution:" + e.Attribution, "liveness:" + string(e.Liveness),
		"identity:" + stringOrNull(e.Identity), "witness:" + e.Witness, "by:" + strings.Join(by, ",")} {
		met[s]++
	}
}

func stringOrNull(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}

func (v *vector) check(t *testing.T, defaults any, file string) {
	t.Helper()
	d := judge("x.lock", v.At.reading(), v.gather(t, defaults))
	got := vectorExpect{d.State, d.Attribution, d.Liveness, orNull(string(d.Identity)), d.Witness, d.ReclaimableBy, d.Cause != "", orNull(d.ID)}
	w := v.Expect
	if got.State != w.State || got.Attribution != w.Attribution || got.Liveness != w.Liveness || got.Witness != w.Witness || got.Cause != w.Cause ||
		stringOrNull(got.Identity) != stringOrNull(w.Identity) || stringOrNull(got.ID) != stringOrNull(w.ID) || !slices.Equal(got.ReclaimableBy, w.ReclaimableBy) {
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(w)
		t.Errorf("%s: %s (rule %s)\n got %s\nwant %s\nbecause %s", file, v.Name, v.Rule, a, b, d.Cause)
	}
}

// reading is what the library makes of what lies there.
func (a *vectorAt) reading() (r reading) {
	switch a.Kind {
	case "nothing":
		r.free = true
		return r
	case "regular":
	default:
		r.blocked = a.Kind
		return r
	}
	data := a.Base64
	if a.Text != nil {
		data = []byte(*a.Text)
	}
	if len(data) > maxRecord {
		r.blocked = "too large"
		return r
	}
	r.record, r.content, r.reason = parseRecord(data)
	if r.id = r.record.Evidence.Acquisition; r.id == "" {
		r.id = contentID(data)
	}
	return r
}

// gather lays a vector's own facts over those of its file.
func (v *vector) gather(t *testing.T, defaults any) facts {
	t.Helper()
	text, err := json.Marshal(defaults)
	if err != nil {
		t.Fatal(err)
	}
	var in vectorFacts
	strictly(t, text, &in)
	for name, value := range v.Facts {
		one, _ := json.Marshal(map[string]json.RawMessage{name: value})
		if name == "seen" || name == "own" { // whole members, no mixture of two
			in.Seen, in.Own = keepUnless(name == "seen", in.Seen), keepUnless(name == "own", in.Own)
		}
		strictly(t, one, &in)
	}
	return in.facts(t)
}

func keepUnless[T any](drop bool, p *T) *T {
	if drop {
		return nil
	}
	return p
}

func (in *vectorFacts) facts(t *testing.T) facts {
	t.Helper()
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	out := facts{host: in.Host, machine: text(in.Machine), source: text(in.MachineSource), fs: kernel.KnownFilesystem(in.Filesystem.Type),
		dev: in.File.Dev, ino: in.File.Ino, flock: flockState(in.Flock)}
	if string(out.fs.Scope) != in.Filesystem.Scope {
		t.Errorf("filesystem %q is %s, the vector says %s", in.Filesystem.Type, out.fs.Scope, in.Filesystem.Scope)
	}
	if in.Flock == "not-asked" {
		out.flock = flockNotAsked
	}
	if in.Own == nil {
		out.ownErr = errors.New("not measured")
	} else {
		out.own = process.Observation{Presence: process.Running, Instance: process.Instance{PID: 99, StartID: "60000",
			Platform: in.Own.Platform, BootID: in.Own.BootID, Namespace: in.Own.Namespace}}
	}
	if in.Seen == nil {
		return out
	}
	seen := process.Observation{Presence: process.Presence(in.Seen.Presence), PidfdID: text(in.Seen.PidfdID)}
	if start := text(in.Seen.StartID); start != "" {
		seen.Instance = out.own.Instance
		seen.Instance.PID, seen.Instance.StartID = 4242, start
	}
	out.seen, out.seenErr = &seen, errors.New("as the vector says")
	return out
}
