package kernel

import (
	"errors"
	"testing"
	"unsafe"
)

// struct rusage_info_v0 is 16 bytes and ten numbers; the kernel writes all of it, and the start is the ninth number.
func TestRusageInfoV0(t *testing.T) {
	var u rusageInfoV0
	if got := unsafe.Sizeof(u); got != 16+10*8 {
		t.Errorf("size %d, want 96", got)
	}
	if got := unsafe.Offsetof(u.StartAbstime); got != 16+8*8 {
		t.Errorf("start at %d, want 80", got)
	}
	for n, want := range map[uint64]string{0: "", 1: "1", 1<<64 - 1: "18446744073709551615"} {
		u = rusageInfoV0{StartAbstime: n, ExitAbstime: 9}
		if got, err := u.start(); got != want || (err == nil) != (want != "") {
			t.Errorf("start %d: %q, %v; want %q", n, got, err, want)
		}
	}
}

func TestJudgeDarwin(t *testing.T) {
	const sleeping, running = 3, 2 // SSLEEP, SRUN of sys/proc.h
	if stateZombie != 5 {
		t.Errorf("SZOMB %d, want 5", stateZombie)
	}
	denied, other := errors.New("denied"), errors.New("another error")
	look := func(pid int, state int8, start string) darwinLook {
		return darwinLook{pid: pid, state: state, start: start}
	}
	fails := darwinLook{err: denied}
	for _, c := range []struct {
		name          string
		first, second darwinLook
		want          Observation
		why           error // of a Cause that judgeDarwin makes itself, any will do
	}{
		{"runs", look(7, running, "22"), look(7, running, "22"),
			Observation{Presence: Running, Instance: Instance{PID: 7, Platform: "darwin", StartID: "22"}}, nil},
		{"zombie", look(7, stateZombie, "22"), look(7, stateZombie, "22"), Observation{Presence: Exited}, nil},
		{"zombie without a start", look(7, stateZombie, ""), look(7, stateZombie, ""), Observation{Presence: Exited}, nil},
		{"becomes a zombie", look(7, running, "22"), look(7, stateZombie, "22"), Observation{Presence: Unknown}, errExchanged},
		{"state changes", look(7, running, "22"), look(7, sleeping, "22"), Observation{Presence: Unknown}, errExchanged},
		{"start changes", look(7, running, "22"), look(7, running, "23"), Observation{Presence: Unknown}, errExchanged},
		{"number changes", look(7, running, "22"), look(8, running, "22"), Observation{Presence: Unknown}, errExchanged},
		{"first look fails", fails, look(7, running, "22"), Observation{Presence: Unknown}, errExchanged},
		{"second look fails", look(7, running, "22"), fails, Observation{Presence: Unknown}, errExchanged},
		{"zombie, then fails", look(7, stateZombie, "22"), fails, Observation{Presence: Unknown}, errExchanged},
		{"both fail", darwinLook{err: other}, fails, Observation{Presence: Running}, denied},
		{"another process", look(8, running, "22"), look(8, running, "22"), Observation{Presence: Running}, nil},
		{"another zombie", look(8, stateZombie, "22"), look(8, stateZombie, "22"), Observation{Presence: Running}, nil},
	} {
		got := judgeDarwin(7, c.first, c.second)
		cause := got.Cause
		got.Cause = nil
		whole := c.want.Instance != Instance{} || c.want.Presence == Exited
		if got != c.want || (cause == nil) != whole || c.why != nil && !errors.Is(cause, c.why) {
			t.Errorf("%s: %+v because %v; want %+v because %v", c.name, got, cause, c.want, c.why)
		}
	}
}
