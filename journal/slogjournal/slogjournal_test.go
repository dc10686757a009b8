package slogjournal

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/heirlock/heirlock/journal"
)

// open opens a journal of records, and says how to read its events back.
func open(t *testing.T, most int) (*journal.Journal[Event], func() []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.jsonl")
	j, err := journal.Open(path, journal.Options[Event]{
		MaxEventBytes: most, MaxPendingItems: 1000, MaxPendingBytes: 1 << 20, MaxFileBytes: 1 << 20, MaxFiles: 2,
	})
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return j, func() (events []string) {
		if err := j.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		for rec, err := range journal.Read(context.Background(), []string{path}, journal.ReadOptions[Event]{}) {
			if err != nil || rec.Anomaly != nil || rec.Gap != nil {
				t.Fatalf("%v, %+v, %+v", err, rec.Anomaly, rec.Gap)
			}
			events = append(events, string(rec.Event))
		}
		return events
	}
}

// What every slog.Handler must do.
func TestSlogtest(t *testing.T) {
	j, events := open(t, 1<<10)
	err := slogtest.TestHandler(New(j, nil), func() (results []map[string]any) {
		for _, text := range events() {
			var record map[string]any
			if err := json.Unmarshal([]byte(text), &record); err != nil {
				t.Fatal(err)
			}
			results = append(results, record)
		}
		return results
	})
	if err != nil {
		t.Error(err)
	}
}

// record makes a record without a time, whose text is the same each time.
func record(h slog.Handler, msg string, args ...any) error {
	r := slog.NewRecord(time.Time{}, slog.LevelInfo, msg, 0)
	r.Add(args...)
	return h.Handle(context.Background(), r)
}

func TestRecords(t *testing.T) {
	j, events := open(t, 1<<10)
	h := New(j, &slog.HandlerOptions{Level: slog.LevelInfo})
	grouped := h.WithAttrs([]slog.Attr{slog.Int("a", 1)}).WithGroup("g").WithAttrs([]slog.Attr{slog.Duration("d", time.Second)})
	for _, err := range []error{
		record(h, "plain <&>", "n", uint64(math.MaxUint64)),
		record(grouped, "grouped", "b", true),
		// A name twice, in the record and in a group: kept under names of their own.
		record(h, "twice", "msg", 1, "k", 2, "k", 3, "k#2", 4, slog.Group("g", "x", []int{1}, "x", map[string]int{"y": 1})),
		record(h.WithAttrs([]slog.Attr{slog.Int("level", 5)}), "twice too"),
		// What JSON cannot say is said in words.
		record(h, "cut \xff", "nan", math.NaN(), "err", errors.New("gone")),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := []string{
		`{"level":"INFO","msg":"plain <&>","n":18446744073709551615}`,
		`{"level":"INFO","msg":"grouped","a":1,"g":{"d":1000000000,"b":true}}`,
		`{"level":"INFO","msg":"twice","msg#2":1,"k":2,"k#2":3,"k#2#2":4,"g":{"x":[1],"x#2":{"y":1}}}`,
		`{"level":"INFO","msg":"twice too","level#2":5}`,
		`{"level":"INFO","msg":"cut ` + "\ufffd" + `","nan":"!ERROR:json: unsupported value: NaN","err":"gone"}`,
	}
	if got := events(); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if st := j.Status(); st.Accepted != 5 || st.Refused != 0 {
		t.Errorf("accepted %d, refused %d: a renamed record counts once", st.Accepted, st.Refused)
	}
	if h.Enabled(context.Background(), slog.LevelDebug) {
		t.Error("debug is enabled at level info")
	}
}

// A name that occurs often costs no more than one that occurs once: otherwise this takes an hour.
func TestManyRepeats(t *testing.T) {
	j, events := open(t, 1<<20-200)
	body := stdjson.RawMessage("{" + strings.Repeat(`"k":1,`, 50_000) + `"k#2":2,"k":{"k":3}}`)
	if err := record(New(j, nil), "req", "body", body); err != nil {
		t.Fatal(err)
	}
	got := events()
	if len(got) != 1 || !strings.HasPrefix(got[0], `{"level":"INFO","msg":"req","body":{"k":1,"k#2":1,"k#3":1,`) ||
		!strings.HasSuffix(got[0], `"k#49999":1,"k#50000":1,"k#2#2":2,"k#50001":{"k":3}}}`) {
		t.Errorf("%d events: %.100s", len(got), got)
	}
}

// Text that is not Unicode is mended, whoever made it.
func TestNotUnicode(t *testing.T) {
	j, events := open(t, 1<<10)
	h := New(j, nil)
	for _, body := range []string{`"a` + "\xff" + `"`, `"\ud800"`, "{\"\\udc00\":[1.50,\"\\ud800x\"],\"\xff\":null}", `"\ud83d\ude00"`} {
		if err := record(h, "m", "b", stdjson.RawMessage(body)); err != nil {
			t.Errorf("%q: %v", body, err)
		}
	}
	head := `{"level":"INFO","msg":"m","b":`
	want := []string{
		head + "\"a\ufffd\"}", head + "\"\ufffd\"}", head + "{\"\ufffd\":[1.50,\"\ufffdx\"],\"\ufffd#2\":null}}", head + "\"\U0001f600\"}",
	}
	if got := events(); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var refused *journal.RefusedError
	if _, err := j.Submit(Event(`{"a":`)); !errors.As(err, &refused) || refused.Reason != journal.ErrInvalid {
		t.Errorf("%v, want ErrInvalid", err)
	}
	if _, err := j.Submit(Event(`{"a":1,"a":2} {}`)); !errors.As(err, &refused) || refused.Reason != journal.ErrInvalid {
		t.Errorf("%v, want ErrInvalid", err)
	}
}

// What the journal refuses is an error of Handle.
func TestRefused(t *testing.T) {
	j, events := open(t, 100)
	h := New(j, nil)
	long := strings.Repeat("x", 100)
	if err := record(h, long); !errors.Is(err, journal.ErrOversized) {
		t.Errorf("%v, want ErrOversized", err)
	}
	if err := record(h, "twice", "k", 1, "k", long); !errors.Is(err, journal.ErrOversized) {
		t.Errorf("%v, want ErrOversized", err)
	}
	if got := events(); len(got) != 0 {
		t.Errorf("written: %q", got)
	}
	if err := j.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	var refused *journal.RefusedError
	if err := record(h, "late"); !errors.As(err, &refused) || refused.Reason != journal.ErrClosed {
		t.Errorf("%v, want ErrClosed", err)
	}
	if by := j.Status().RefusalsByReason; by.Oversized != 2 || by.Closed != 1 {
		t.Errorf("refusals %+v", by)
	}
}
