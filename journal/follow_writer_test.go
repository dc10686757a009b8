package journal

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// A follower and readings beside our own writer, through some fifty rotations and two epochs: every frame once, in order.
func TestReadBesideOurWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	const frames, epochs = 2000, 2
	followed := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	go func() {
		for rec, err := range Read(ctx, []string{path}, ReadOptions[int]{Follow: true}) {
			if err != nil {
				followed <- err
				return
			}
			if rec.Anomaly != nil || rec.Gap != nil || rec.Event != n || rec.Sequence != uint64(n%frames+1) {
				t.Errorf("frame %d: %+v", n, rec)
			}
			if n++; n == frames*epochs {
				cancel()
			}
		}
		followed <- nil
	}()
	for epoch := range epochs {
		j, err := Open(path, Options[int]{MaxEventBytes: 100, MaxPendingItems: 100, MaxPendingBytes: 1 << 20, MaxFileBytes: 8 << 10, MaxFiles: 200})
		if err != nil {
			t.Fatal(err)
		}
		for i := range frames {
			if _, err := j.SubmitWait(t.Context(), epoch*frames+i); err != nil {
				t.Fatal(err)
			}
			if i%500 == 250 {
				readBeside(t, path)
			}
		}
		if err := j.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-followed; err != nil || n != frames*epochs {
		t.Errorf("%d frames followed, %v", n, err)
	}
	report, err := Verify(t.Context(), []string{path}, ReadOptions[jsontext.Value]{Generations: true})
	if err != nil || report.Frames != frames*epochs || report.Anomalies != 0 || report.Gaps != 0 || report.Epochs != epochs {
		t.Errorf("verified %+v, %v", report, err)
	}
}

// readBeside reads what is there: all from the first frame on.
func readBeside(t *testing.T, path string) {
	n := 0
	for rec, err := range Read(t.Context(), []string{path}, ReadOptions[int]{Generations: true}) {
		// The last frame may be half written: to the kernel, a write is not one step.
		if err != nil || rec.Gap != nil || rec.Anomaly != nil && rec.Anomaly.Position != "tail" || rec.Anomaly == nil && rec.Event != n {
			t.Errorf("beside the writer, after %d frames: %+v, %v", n, rec, err)
		}
		if rec.Anomaly == nil {
			n++
		}
	}
}
