package journal

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// A Validate that ends its goroutine, as t.FailNow does, ends Verify with an error, in whatever part it does so.
func TestVerifyValidateExits(t *testing.T) {
	body := strings.Repeat(frameText(epochA, 1, `"`+strings.Repeat("x", 300)+`"`), 4000)
	path := inFile(t, filepath.Join(t.TempDir(), "j"), body)
	for _, at := range []int{1, 2000, 4000} {
		n := 0
		report, err := Verify(t.Context(), []string{path}, ReadOptions[jsontext.Value]{Validate: func(jsontext.Value) error {
			if n++; n == at {
				runtime.Goexit()
			}
			return nil
		}})
		if err != errExited || report.Files != 0 {
			t.Errorf("frame %d: %+v, %v", at, report, err)
		}
	}
	if report, err := Verify(t.Context(), []string{path}, ReadOptions[jsontext.Value]{}); err != nil || report.Frames != 4000 {
		t.Errorf("verified %+v, %v", report, err)
	}
}
