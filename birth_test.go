package heirlock

import (
	"regexp"
	"testing"
	"time"
)

// An acquisition is a UUID of version 7: the time first, so that ids sort as they were made, then what no two share.
func TestAcquisitionIsUUIDv7(t *testing.T) {
	at := time.UnixMilli(0x019012345678)
	a, b := newAcquisition(at), newAcquisition(at)
	form := regexp.MustCompile(`^01901234-5678-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if !form.MatchString(a) || !form.MatchString(b) || a == b {
		t.Errorf("%s, %s", a, b)
	}
}
