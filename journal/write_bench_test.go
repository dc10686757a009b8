package journal_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/heirlock/heirlock/journal"
)

// request is an event as services have it, of 193 bytes without a detail.
type request struct {
	Kind       string   `json:"kind"`
	Component  string   `json:"component"`
	RequestID  string   `json:"requestId"`
	Actor      string   `json:"actor"`
	DurationMs float64  `json:"durationMs"`
	Attempt    int      `json:"attempt"`
	OK         bool     `json:"ok"`
	Bytes      int64    `json:"bytes"`
	Tags       []string `json:"tags"`
	Detail     string   `json:"detail,omitempty"`
}

func aRequest(detail int) *request {
	const line = "goroutine 41 [running]: main.(*pool).run(0xc0001a2000) \"pool.go\":118 +0x1d5\n"
	return &request{
		Kind: "request.complete", Component: "scheduler", RequestID: "req-8f14e45fceea167a", Actor: "worker-17",
		DurationMs: 12.375, Attempt: 3, OK: true, Bytes: 184467, Tags: []string{"eu", "batch", "retry"},
		Detail: strings.Repeat(line, detail/len(line)+1)[:detail],
	}
}

func benchJournal(b *testing.B) (*journal.Journal[*request], string) {
	path := filepath.Join(b.TempDir(), "j")
	j, err := journal.Open(path, journal.Options[*request]{
		MaxEventBytes: 64 << 10, MaxPendingItems: 1 << 16, MaxPendingBytes: 8 << 20, MaxFileBytes: 64 << 20, MaxFiles: 4,
	})
	if err != nil {
		b.Fatal(err)
	}
	return j, path
}

// done makes sure that the work was done.
func done(b *testing.B, j *journal.Journal[*request]) {
	b.Helper()
	if err := j.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	if s := j.Status(); s.Written != uint64(b.N) || s.Received-s.Refused != s.Written {
		b.Fatalf("%d events: %v", b.N, j)
	}
}

// BenchmarkSubmit compares the way of an event into the file, the closing included, with what bounds it from below: F, to
// append ready bytes and write 64 KiB at once, and the encoder alone. Goals are ratios of one run.
func BenchmarkSubmit(b *testing.B) {
	for _, size := range []struct {
		name   string
		detail int
	}{{"200B", 0}, {"2KiB", 1850}} {
		e := aRequest(size.detail)
		frame := appendedFrame(b, e)
		b.Run(size.name+"/F", func(b *testing.B) { appendReady(b, frame) })
		b.Run(size.name+"/encoder", func(b *testing.B) { encodeAlone(b, e) })
		b.Run(size.name+"/journal", func(b *testing.B) {
			j, _ := benchJournal(b)
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				if _, err := j.SubmitWait(context.Background(), e); err != nil {
					b.Fatal(err)
				}
			}
			done(b, j)
		})
		b.Run(size.name+"/journal8", func(b *testing.B) {
			j, _ := benchJournal(b)
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			b.SetParallelism(4) // 8 on two cores
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if _, err := j.SubmitWait(context.Background(), e); err != nil {
						b.Error(err)
					}
				}
			})
			done(b, j)
		})
	}
}

func appendedFrame(b *testing.B, e *request) []byte {
	event, err := json.Marshal(e)
	if err != nil {
		b.Fatal(err)
	}
	return slices.Concat([]byte(`{"schemaVersion":1,"epoch":"0198f2c4-7b1a-4c3e-9a55-3f1d2b6c8e90","sequence":1000000,"event":`), event, []byte("}\n"))
}

func appendReady(b *testing.B, frame []byte) {
	f, err := os.Create(filepath.Join(b.TempDir(), "f"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	buf := make([]byte, 0, 64<<10)
	b.SetBytes(int64(len(frame)))
	size := 0
	for b.Loop() {
		if len(buf)+len(frame) > cap(buf) {
			if _, err := f.Write(buf); err != nil {
				b.Fatal(err)
			}
			if size += len(buf); size > 64<<20 {
				size = 0
				f.Truncate(0)
				f.Seek(0, 0)
			}
			buf = buf[:0]
		}
		buf = append(buf, frame...)
	}
}

type sink struct{ n int }

func (s *sink) Write(p []byte) (int, error) { s.n += len(p); return len(p), nil }

func encodeAlone(b *testing.B, e *request) {
	var s sink
	var enc jsontext.Encoder
	for b.Loop() {
		enc.Reset(&s, json.Deterministic(true))
		if err := json.MarshalEncode(&enc, e); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSubmitLatency reports how long a Submit takes at a steady 20,000 events per second.
func BenchmarkSubmitLatency(b *testing.B) {
	j, _ := benchJournal(b)
	e := aRequest(0)
	took := make([]time.Duration, 0, b.N)
	next := time.Now()
	for range b.N {
		for next = next.Add(50 * time.Microsecond); time.Now().Before(next); {
		}
		began := time.Now()
		if _, err := j.Submit(e); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	done(b, j)
	slices.Sort(took)
	for _, q := range []struct {
		name string
		at   float64
	}{{"p50-ns", .5}, {"p99-ns", .99}, {"p99.9-ns", .999}} {
		b.ReportMetric(float64(took[int(math.Ceil(q.at*float64(len(took))))-1]), q.name)
	}
}
