package journals

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/rs/zerolog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"gopkg.in/natefinch/lumberjack.v2"

	"github.com/heirlock/heirlock/journal"
)

const fileBytes = 4 << 20 // every peer that can rotate does so at 4 MiB, and keeps all files

// peer is one way to write events to a file. A submit that blocks is true of those that have nothing else.
type peer struct {
	name      string
	producers int // at most
	open      func(dir string) (submit func(e *event) error, close func() error, err error)
}

// The limits F, E and V have one producer and no rotation: they are what the frames cost at least.
var peers = []peer{
	{"F", 1, func(dir string) (func(*event) error, func() error, error) {
		var ready []byte
		return limit(dir, func(b []byte, sequence uint64, e *event) ([]byte, error) {
			if ready == nil {
				ready = e.appendJSON(nil)
			}
			return appendFrame(b, sequence, func(b []byte) []byte { return append(b, ready...) }), nil
		})
	}},
	{"E", 1, func(dir string) (func(*event) error, func() error, error) {
		return limit(dir, func(b []byte, sequence uint64, e *event) ([]byte, error) {
			return appendFrame(b, sequence, e.appendJSON), nil
		})
	}},
	{"V", 1, func(dir string) (func(*event) error, func() error, error) {
		var out appended
		enc := jsontext.NewEncoder(&out, json.Deterministic(true))
		return limit(dir, func(b []byte, sequence uint64, e *event) (_ []byte, err error) {
			b = appendFrame(b, sequence, func(b []byte) []byte {
				out = b
				err = json.MarshalEncode(enc, e)
				return out[:len(out)-1] // its line feed
			})
			return b, err
		})
	}},
	{"P", 8, func(dir string) (func(*event) error, func() error, error) {
		sink := &lumberjack.Logger{Filename: filepath.Join(dir, "log"), MaxSize: fileBytes >> 20}
		buffered := &zapcore.BufferedWriteSyncer{WS: zapcore.AddSync(sink)}
		core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), buffered, zap.InfoLevel)
		log := zap.New(core).With(zap.Int("schemaVersion", 1), zap.String("epoch", epoch))
		var sequence atomic.Uint64
		submit := func(e *event) error {
			log.Info(e.Kind, zap.Uint64("sequence", sequence.Add(1)), zap.Object("event", e))
			return nil
		}
		return submit, func() error { return errors.Join(buffered.Stop(), sink.Close()) }, nil
	}},
	{"S", 8, func(dir string) (func(*event) error, func() error, error) {
		sink := &lumberjack.Logger{Filename: filepath.Join(dir, "log"), MaxSize: fileBytes >> 20}
		log := zerolog.New(sink).With().Timestamp().Int("schemaVersion", 1).Str("epoch", epoch).Logger()
		var sequence atomic.Uint64
		submit := func(e *event) error {
			d := zerolog.Dict().Str("kind", e.Kind).Str("component", e.Component).Str("requestId", e.RequestID).Str("actor", e.Actor).
				Float64("durationMs", e.DurationMs).Int("attempt", e.Attempt).Bool("ok", e.OK).Int64("bytes", e.Bytes).Strs("tags", e.Tags)
			if e.Detail != "" {
				d = d.Str("detail", e.Detail)
			}
			log.Info().Uint64("sequence", sequence.Add(1)).Dict("event", d).Send()
			return nil
		}
		return submit, sink.Close, nil
	}},
	{"heirlock", 8, func(dir string) (func(*event) error, func() error, error) {
		j, err := journal.Open(filepath.Join(dir, "log"), journal.Options[event]{
			MaxEventBytes: 64 << 10, MaxPendingItems: 1 << 16, MaxPendingBytes: 16 << 20, MaxFileBytes: fileBytes, MaxFiles: 1000,
		})
		if err != nil {
			return nil, nil, err
		}
		submit := func(e *event) error {
			_, err := j.SubmitWait(context.Background(), *e)
			return err
		}
		return submit, func() error {
			err := j.Close(context.Background())
			if s := j.Status(); s.Refused+s.Failed > 0 {
				err = errors.Join(err, errors.New("events were refused or failed: "+j.String()))
			}
			return err
		}, nil
	}},
}

// appended is a writer that appends.
type appended []byte

func (a *appended) Write(p []byte) (int, error) {
	*a = append(*a, p...)
	return len(p), nil
}

const batch = 64 << 10 // bytes of one write of the limits

// limit writes frames in pieces of 64 KiB, and nothing else.
func limit(dir string, add func(b []byte, sequence uint64, e *event) ([]byte, error)) (func(*event) error, func() error, error) {
	f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}
	buf, sequence := make([]byte, 0, batch), uint64(0)
	submit := func(e *event) error {
		sequence++
		whole := len(buf)
		var err error
		if buf, err = add(buf, sequence, e); err != nil || len(buf) <= batch {
			return err
		}
		_, err = f.Write(buf[:whole])
		buf = buf[:copy(buf, buf[whole:])]
		return err
	}
	return submit, func() error {
		_, err := f.Write(buf)
		return errors.Join(err, f.Close())
	}, nil
}
