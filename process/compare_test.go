package process

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

var recorded = Instance{PID: 7, Platform: "linux", BootID: "boot-r", Namespace: "pid:[1];time:[2]", StartID: "22"}

// with returns the recorded instance with one field changed.
func with(change func(*Instance)) Instance {
	i := recorded
	change(&i)
	return i
}

func TestCompare(t *testing.T) {
	observer := with(func(i *Instance) { i.PID = 99; i.StartID = "88" }) // its own number and start are not compared
	otherBoot := with(func(i *Instance) { i.BootID = "boot-o" })
	otherNamespace := with(func(i *Instance) { i.Namespace = "pid:[3];time:[2]" })
	both := with(func(i *Instance) { i.BootID = "boot-o"; i.Namespace = "pid:[3];time:[2]" })
	mac := with(func(i *Instance) { i.Platform = "darwin" })
	macBoot := with(func(i *Instance) { i.Platform = "darwin"; i.BootID = "boot-o" })
	runs := func(start, id string) Observation {
		return Observation{Presence: Running, Instance: with(func(i *Instance) { i.StartID = start }), PidfdID: id}
	}
	unmeasured := func(id string) Observation { return Observation{Presence: Running, PidfdID: id} }
	absent, exited, unknown := Observation{Presence: Absent}, Observation{Presence: Exited}, Observation{Presence: Unknown}
	denied := errors.New("denied")

	for _, c := range []struct {
		name     string
		recorded Instance
		pidfdID  string
		own      Instance
		seen     Observation
		want     Identity
		says     []string // in the reason; none: no reason
	}{
		{"equal", recorded, "", observer, runs("22", ""), Matched, nil},
		{"equal, one id recorded", recorded, "5", observer, runs("22", ""), Matched, nil},
		{"equal, one id seen", recorded, "", observer, runs("22", "5"), Matched, nil},
		{"equal, equal ids", recorded, "5", observer, runs("22", "5"), Matched, nil},
		{"equal starts, other id", recorded, "5", observer, runs("22", "6"), ReusedPID, nil},
		{"other start", recorded, "", observer, runs("23", ""), ReusedPID, nil},
		{"other start, one id recorded", recorded, "5", observer, runs("23", ""), ReusedPID, nil},
		{"other start, one id seen", recorded, "", observer, runs("23", "5"), ReusedPID, nil},
		{"other start, other id", recorded, "5", observer, runs("23", "6"), ReusedPID, nil},
		{"other start, equal ids", recorded, "5", observer, runs("23", "5"), Unavailable, []string{"contradiction", "5", "22", "23"}},
		{"start as text, not as number", recorded, "", observer, runs("022", ""), ReusedPID, nil},
		{"start not read", recorded, "", observer, unmeasured(""), Unavailable, []string{"7", "denied"}},
		{"start not read, equal ids", recorded, "5", observer, unmeasured("5"), Unavailable, []string{"7", "denied"}},
		{"start not read, other id", recorded, "5", observer, unmeasured("6"), ReusedPID, nil},

		{"absent", recorded, "5", observer, absent, PIDGone, nil},
		{"exited", recorded, "5", observer, exited, PIDGone, nil},
		{"exited, equal id", recorded, "5", observer, Observation{Presence: Exited, PidfdID: "5"}, PIDGone, nil},
		{"unknown", recorded, "5", observer, unknown, Unavailable, []string{"7", "denied"}},
		{"unknown, other id", recorded, "5", observer, Observation{Presence: Unknown, PidfdID: "6"}, Unavailable, []string{"7", "denied"}},
		{"no presence at all", recorded, "5", observer, Observation{}, Unavailable, []string{"7", "denied"}},

		{"other boot, number matches", recorded, "5", otherBoot, runs("22", "5"), DifferentBoot, nil},
		{"other boot, absent", recorded, "", otherBoot, absent, DifferentBoot, nil},
		{"other boot, unknown", recorded, "", otherBoot, unknown, DifferentBoot, nil},
		{"other boot, not probed", recorded, "", otherBoot, Observation{}, DifferentBoot, nil},
		{"other boot and namespace", recorded, "", both, absent, DifferentBoot, nil},
		{"other namespace, absent", recorded, "5", otherNamespace, absent, Unavailable, []string{"pid:[1];time:[2]", "pid:[3];time:[2]"}},
		{"other namespace, other start", recorded, "5", otherNamespace, runs("23", "6"), Unavailable, []string{"pid:[1];time:[2]", "pid:[3];time:[2]"}},
		{"other namespace, equal", recorded, "5", otherNamespace, runs("22", "5"), Unavailable, []string{"pid:[1];time:[2]", "pid:[3];time:[2]"}},
		{"other platform", recorded, "", mac, absent, Unavailable, []string{"linux", "darwin"}},
		{"other platform and boot", recorded, "", macBoot, absent, Unavailable, []string{"linux", "darwin"}},

		{"nothing recorded", Instance{}, "", observer, absent, Unavailable, []string{"record"}},
		{"nothing recorded, nothing measured", Instance{}, "", Instance{}, absent, Unavailable, []string{"record"}},
		{"nothing measured", recorded, "", Instance{}, absent, Unavailable, []string{"could not measure itself"}},
		{"record without boot", with(func(i *Instance) { i.BootID = "" }), "", observer, absent, Unavailable, []string{"record"}},
		{"observer without boot", recorded, "", with(func(i *Instance) { i.BootID = "" }), absent, Unavailable, []string{"could not measure itself"}},
	} {
		got, reason := Compare(c.recorded, c.pidfdID, c.own, c.seen, denied)
		if got != c.want || (reason == "") != (c.says == nil) {
			t.Errorf("%s: %s (%q), want %s", c.name, got, reason, c.want)
		}
		for _, s := range c.says {
			if !strings.Contains(reason, s) {
				t.Errorf("%s: the reason %q does not say %q", c.name, reason, s)
			}
		}
	}
}

func TestIdentityLiveness(t *testing.T) {
	for identity, want := range map[Identity]Liveness{
		Matched: Alive, DifferentBoot: Gone, ReusedPID: Gone, PIDGone: Gone,
		Legacy: NotProbed, Unavailable: NotProbed, "": NotProbed, "something new": NotProbed,
	} {
		if got := identity.Liveness(); got != want {
			t.Errorf("%q: %s, want %s", identity, got, want)
		}
	}
}

// The zero value, and every value that lacks a field, is no instance; two are equal only in all fields.
func TestInstance(t *testing.T) {
	fields := map[string]func(*Instance, string){
		"Platform":  func(i *Instance, s string) { i.Platform = s },
		"BootID":    func(i *Instance, s string) { i.BootID = s },
		"Namespace": func(i *Instance, s string) { i.Namespace = s },
		"StartID":   func(i *Instance, s string) { i.StartID = s },
		"PID": func(i *Instance, s string) {
			if i.PID = 8; s == "" {
				i.PID = 0
			}
		},
	}
	if (Instance{}).Valid() || with(func(i *Instance) { i.PID = -1 }).Valid() || !recorded.Valid() {
		t.Error("zero or a negative number is valid, or a whole instance is not")
	}
	for name, set := range fields {
		empty, other := recorded, recorded
		set(&empty, "")
		set(&other, "other")
		if empty.Valid() || empty.String() != "no instance" {
			t.Errorf("%s empty: valid %v, %s", name, empty.Valid(), empty)
		}
		if !other.Valid() || other == recorded || empty == recorded {
			t.Errorf("%s other: valid %v, equal %v", name, other.Valid(), other == recorded)
		}
		if other.String() == recorded.String() {
			t.Errorf("%s does not appear in %s", name, other)
		}
	}
	seen := map[Instance]int{recorded: 1, {}: 2}
	if same := recorded; seen[same] != 1 || seen[Instance{}] != 2 {
		t.Errorf("as a map key: %v", seen)
	}
}

func TestObserveNoNumber(t *testing.T) {
	above := int64(math.MaxInt32) + 1 // an int of 32 bits cannot hold it
	for _, pid := range []int{0, -1, math.MinInt32, int(above)} {
		o, err := Observe(pid)
		if o != (Observation{Presence: Unknown}) || err == nil || !strings.Contains(err.Error(), fmt.Sprint(pid)) {
			t.Errorf("%d: %+v, %v; want unknown and an error that names it", pid, o, err)
		}
	}
}
