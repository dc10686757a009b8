// Package journals measures the journal beside its limits and its rivals.
package journals

import (
	"strconv"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// event is what every peer writes: about 190 bytes of JSON, or 2 KiB with a detail.
type event struct {
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

const epoch = "0b7c8f5e-3c1d-4a52-9a77-5a1e6f0d2c94"

func newEvent(detail int) event {
	const line = "goroutine 41 [running]: main.(*pool).run(0xc0001a2000) \"pool.go\":118 +0x1d5\n"
	return event{
		Kind: "request.complete", Component: "scheduler", RequestID: "req-8f14e45fceea167a", Actor: "worker-17",
		DurationMs: 12.375, Attempt: 3, OK: true, Bytes: 184467, Tags: []string{"eu", "batch", "retry"},
		Detail: strings.Repeat(line, detail/len(line)+1)[:detail],
	}
}

// appendJSON is an encoder written by hand for this one type. It checks no UTF-8.
func (e *event) appendJSON(b []byte) []byte {
	b = appendText(append(b, `{"kind":`...), e.Kind)
	b = appendText(append(b, `,"component":`...), e.Component)
	b = appendText(append(b, `,"requestId":`...), e.RequestID)
	b = appendText(append(b, `,"actor":`...), e.Actor)
	b = strconv.AppendFloat(append(b, `,"durationMs":`...), e.DurationMs, 'f', -1, 64)
	b = strconv.AppendInt(append(b, `,"attempt":`...), int64(e.Attempt), 10)
	b = strconv.AppendBool(append(b, `,"ok":`...), e.OK)
	b = strconv.AppendInt(append(b, `,"bytes":`...), e.Bytes, 10)
	b = append(b, `,"tags":[`...)
	for i, tag := range e.Tags {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, tag)
	}
	b = append(b, ']')
	if e.Detail != "" {
		b = appendText(append(b, `,"detail":`...), e.Detail)
	}
	return append(b, '}')
}

func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i]...)
		switch {
		case c == '\n':
			b = append(b, '\\', 'n')
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		default:
			b = append(b, '\\', c)
		}
		from = i + 1
	}
	return append(append(b, s[from:]...), '"')
}

func appendFrame(b []byte, sequence uint64, encode func([]byte) []byte) []byte {
	b = append(b, `{"schemaVersion":1,"epoch":"`+epoch+`","sequence":`...)
	b = append(strconv.AppendUint(b, sequence, 10), `,"event":`...)
	return append(encode(b), '}', '\n')
}

// MarshalLogObject is how a program that uses zap writes its own type.
func (e *event) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddString("kind", e.Kind)
	enc.AddString("component", e.Component)
	enc.AddString("requestId", e.RequestID)
	enc.AddString("actor", e.Actor)
	enc.AddFloat64("durationMs", e.DurationMs)
	enc.AddInt("attempt", e.Attempt)
	enc.AddBool("ok", e.OK)
	enc.AddInt64("bytes", e.Bytes)
	zap.Strings("tags", e.Tags).AddTo(enc)
	if e.Detail != "" {
		enc.AddString("detail", e.Detail)
	}
	return nil
}
