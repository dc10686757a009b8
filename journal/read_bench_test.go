package journal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// sample is a file of frames with events of about so many bytes, and the same lines in memory.
func sample(b *testing.B, event int) (path string, text []byte) {
	b.Helper()
	const size = 16 << 20
	e := `{"kind":"request.complete","component":"scheduler","requestId":"req-8f14e45fceea167a","actor":"worker-17",` +
		`"durationMs":12.375,"attempt":%d,"ok":true,"bytes":%d,"tags":["eu","batch","retry"]`
	if event > 300 {
		const detail = `goroutine 41 [running]: main.(*pool).run(0xc0001a2000) \"pool.go\":118 +0x1d5\n`
		e += `,"detail":"` + strings.Repeat(detail, (event-200)/len(detail)+1) + `"`
	}
	for sequence := uint64(1); len(text) < size; sequence++ {
		text = append(text, frameText(epochA, sequence, fmt.Sprintf(e+"}", sequence%9, sequence*7919))...)
	}
	path = filepath.Join(b.TempDir(), "j")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		b.Fatal(err)
	}
	return path, text
}

// isValid is the measure: jsontext.Value.IsValid over the same lines, on one core.
func isValid(b *testing.B, text []byte) (frames uint64) {
	for line := range bytes.Lines(text) {
		if !jsontext.Value(line).IsValid() {
			b.Fatalf("invalid: %s", line)
		}
		frames++
	}
	return frames
}

// compare runs the measure and the reader alternately, and reports the ratio of their speeds.
func compare(b *testing.B, reader func(path string) uint64) {
	for _, event := range []int{200, 2048} {
		b.Run(fmt.Sprintf("%dB", event), func(b *testing.B) {
			path, text := sample(b, event)
			b.SetBytes(int64(len(text)))
			var measure, ours time.Duration
			for b.Loop() {
				start := time.Now()
				want := isValid(b, text)
				middle := time.Now()
				got := reader(path)
				ours += time.Since(middle)
				measure += middle.Sub(start)
				if got != want {
					b.Fatalf("%d frames of %d", got, want)
				}
			}
			b.ReportMetric(float64(measure)/float64(ours), "×IsValid")
			b.ReportMetric(float64(len(text))*float64(b.N)/ours.Seconds()/1e6, "reader-MB/s")
		})
	}
}

func BenchmarkRead(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	compare(b, func(path string) (frames uint64) {
		for _, err := range Read(b.Context(), []string{path}, ReadOptions[jsontext.Value]{}) {
			if err != nil {
				b.Fatal(err)
			}
			frames++
		}
		return frames
	})
}

func BenchmarkVerify(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	compare(b, func(path string) uint64 {
		report, err := Verify(b.Context(), []string{path}, ReadOptions[jsontext.Value]{})
		if err != nil || report.Anomalies != 0 {
			b.Fatal(report, err)
		}
		return report.Frames
	})
}
