package journal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"
)

type item struct {
	Text string  `json:"text"`
	F    float64 `json:"f"`
}

// model is what §7 says that a journal does, in counts and lists. Its writer is driven by hand, a batch at a time, so that
// every state can be met.
type model struct {
	t    *rapid.T
	j    *Journal[item]
	want Status
	text []string // of the accepted events, in order
	size []int64  // of their frames

	waiting []*pendingCall
	flushes []*pendingCall
	over    bool // the writer has ended
}

// pendingCall is a call that may block.
type pendingCall struct {
	text string
	size int    // of the event
	upto uint64 // of a flush
	done chan error
}

func (m *model) frame(event int) int64 { return int64(frameBytes(m.want.LastAccepted+1, event)) }

// reason is why an event of so many bytes would be refused now.
func (m *model) reason(event int, invalid bool) error {
	b := &m.want.Bounds
	switch {
	case m.want.State == stateFailed:
		return ErrFailed
	case m.want.State != stateOpen:
		return ErrClosed
	case invalid:
		return ErrInvalid
	case event > b.MaxEventBytes:
		return ErrOversized
	case m.want.PendingItems >= b.MaxPendingItems:
		return ErrItemCapacity
	case m.want.PendingBytes+m.frame(event) > b.MaxPendingBytes:
		return ErrByteCapacity
	}
	return nil
}

func (m *model) refused(reason error) {
	by := &m.want.RefusalsByReason
	*map[error]*uint64{
		ErrFailed: &by.Failed, ErrClosed: &by.Closed, ErrInvalid: &by.Invalid, ErrOversized: &by.Oversized,
		ErrItemCapacity: &by.ItemCapacity, ErrByteCapacity: &by.ByteCapacity,
	}[reason]++
	m.want.Received++
	m.want.Refused++
}

func (m *model) accepted(text string, event int) {
	size := m.frame(event)
	m.want.Received++
	m.want.Accepted++
	m.want.LastAccepted++
	m.want.PendingItems++
	m.want.PendingBytes += size
	m.text, m.size = append(m.text, text), append(m.size, size)
}

// settled moves on to so many written frames, and decides about those who wait.
func (m *model) settled(written uint64) {
	for ; m.want.Written < written; m.want.Written++ {
		m.want.PendingItems--
		m.want.PendingBytes -= m.size[m.want.Written]
	}
	m.want.LastWritten, m.want.LastSettled = written, written
	m.decideWaiting()
}

func (m *model) decideWaiting() {
	for len(m.waiting) > 0 {
		c := m.waiting[0]
		reason := m.reason(c.size, false)
		if isCapacity(reason) {
			return
		}
		m.waiting = m.waiting[1:]
		if err := <-c.done; !errors.Is(err, reason) {
			m.t.Fatalf("SubmitWait: %v, want %v", err, reason)
		}
		if reason == nil {
			m.accepted(c.text, c.size)
		} else {
			m.refused(reason)
		}
	}
}

func (m *model) event(t *rapid.T) (item, int, bool) {
	e := item{Text: strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 7, 60, 80, 82, 83, 84, 200}).Draw(t, "length"))}
	size := len(`{"text":"","f":0}`) + len(e.Text)
	if rapid.IntRange(0, 9).Draw(t, "invalid") == 0 {
		e.F = math.NaN()
		return e, size, true
	}
	return e, size, false
}

func (m *model) Submit(t *rapid.T) {
	e, size, invalid := m.event(t)
	reason := m.reason(size, invalid)
	r, err := m.j.Submit(e)
	var refused *RefusedError
	switch {
	case reason == nil && err == nil:
		if want := (Receipt{m.want.LastAccepted + 1, int(m.frame(size))}); r != want {
			t.Fatalf("receipt %+v, want %+v", r, want)
		}
		m.accepted(e.Text, size)
	case reason != nil && errors.As(err, &refused) && refused.Reason == reason:
		m.refused(reason)
	default:
		t.Fatalf("Submit of %d bytes (invalid: %v): %v, want %v", size, invalid, err, reason)
	}
}

func (m *model) SubmitWait(t *rapid.T) {
	e, size, invalid := m.event(t)
	reason := m.reason(size, invalid)
	c := &pendingCall{text: e.Text, size: size, done: make(chan error, 1)}
	go func() {
		_, err := m.j.SubmitWait(context.Background(), e)
		c.done <- err
	}()
	if reason == nil && len(m.waiting) > 0 || isCapacity(reason) {
		m.waiting = append(m.waiting, c)
		m.until(func() bool { return len(m.j.ledger.waiting) == len(m.waiting) })
		return
	}
	if err := <-c.done; !errors.Is(err, reason) {
		t.Fatalf("SubmitWait: %v, want %v", err, reason)
	}
	if reason == nil {
		m.accepted(e.Text, size)
	} else {
		m.refused(reason)
	}
}

// GiveUp ends the wait of the last: nobody counts it.
func (m *model) GiveUp(t *rapid.T) {
	if m.want.State != stateOpen || m.want.PendingItems < m.want.Bounds.MaxPendingItems {
		t.Skip("there is room")
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	gone, why := make(chan error, 1), errors.New("gave up")
	go func() {
		_, err := m.j.SubmitWait(ctx, item{})
		gone <- err
	}()
	m.until(func() bool { return len(m.j.ledger.waiting) == len(m.waiting)+1 })
	cancel(why)
	if err := <-gone; err != why {
		t.Fatalf("%v, want the cause of the context", err)
	}
}

// until waits for something that another goroutine is about to do to the ledger.
func (m *model) until(seen func() bool) {
	for {
		m.j.ledger.mu.Lock()
		ok := seen()
		m.j.ledger.mu.Unlock()
		if ok {
			return
		}
		runtime.Gosched()
	}
}

func (m *model) Flush(t *rapid.T) {
	c := &pendingCall{upto: m.want.LastAccepted, done: make(chan error, 1)}
	go func() { c.done <- m.j.Flush(context.Background()) }()
	m.flushes = append(m.flushes, c)
	if c.upto > m.want.LastSettled {
		m.until(func() bool { return len(m.j.ledger.marks) == len(m.flushes) })
	}
}

// FlushWithoutTime is a flush whose context has ended: what is settled already wins.
func (m *model) FlushWithoutTime(t *rapid.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := m.j.Flush(ctx)
	switch {
	case m.want.LastSettled < m.want.LastAccepted:
		if err != context.Canceled {
			t.Fatalf("%v, want %v", err, context.Canceled)
		}
	case m.want.LastWritten < m.want.LastAccepted:
		if !errors.Is(err, ErrFailed) {
			t.Fatalf("%v, want %v", err, ErrFailed)
		}
	case err != nil:
		t.Fatal(err)
	}
}

// Batch lets the writer append once.
func (m *model) Batch(t *rapid.T) {
	if m.want.PendingItems == 0 {
		t.Skip("nothing is pending")
	}
	m.clearKick()
	if phase, err := m.j.writer.batch(); err != nil {
		t.Fatal(phase, err)
	}
	written := m.j.Status().Written
	if written <= m.want.Written || written > m.want.Written+uint64(m.want.PendingItems) {
		t.Fatalf("%d of %d written", written, m.want.Accepted)
	}
	m.settled(written)
}

func (m *model) clearKick() {
	select {
	case <-m.j.ledger.kick:
	default:
	}
}

func (m *model) Fail(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "fail") > 0 || m.want.State == stateFailed || m.over {
		t.Skip("not now")
	}
	m.j.ledger.fail(phaseWrite, errors.New("by hand"))
	m.want.State = stateFailed
	m.want.LastFailure = &failure{Phase: phaseWrite, Cause: "by hand"}
	if m.want.PendingItems > 0 {
		m.want.LastFailure.Sequence = m.want.LastSettled + 1
	}
	m.want.Failed += uint64(m.want.PendingItems)
	m.want.PendingItems, m.want.PendingBytes, m.want.LastSettled = 0, 0, m.want.LastAccepted
	m.decideWaiting()
}

func (m *model) Close(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "close") > 0 {
		t.Skip("not now")
	}
	m.close()
}

// close is a Close with a context that has ended: the work goes on.
func (m *model) close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := m.j.Close(ctx); !m.over && err != context.Canceled || m.over && m.want.State == stateClosed && err != nil {
		m.t.Fatalf("close: %v", err)
	}
	if m.want.State == stateOpen {
		m.want.State = stateDraining
		m.decideWaiting()
	}
}

// End lets the writer end, if there is nothing left to do.
func (m *model) End(t *rapid.T) {
	if m.over || m.want.State == stateOpen || m.want.PendingItems > 0 {
		t.Skip("there is something to do")
	}
	m.end()
}

func (m *model) end() {
	if !m.j.writer.over() {
		m.t.Fatal("the writer is not over")
	}
	m.j.writer.finish()
	m.over = true
	if m.want.State == stateDraining {
		m.want.State = stateClosed
	}
	err := m.j.Close(context.Background())
	if failed := m.want.State == stateFailed; failed != errors.Is(err, ErrFailed) || !failed && err != nil {
		m.t.Fatalf("close in state %s: %v", m.want.State, err)
	}
}

// Check compares every count, after every step.
func (m *model) Check(t *rapid.T) {
	for i := 0; i < len(m.flushes); i++ {
		c := m.flushes[i]
		if c.upto > m.want.LastSettled {
			continue
		}
		if err := <-c.done; (err != nil) != (c.upto > m.want.LastWritten) || err != nil && !errors.Is(err, ErrFailed) {
			t.Fatalf("flush up to %d: %v, with %+v", c.upto, err, m.want)
		}
		m.flushes = slices.Delete(m.flushes, i, i+1)
		i--
	}
	got := m.j.Status()
	if got.Received != got.Accepted+got.Refused || got.Accepted != got.Written+got.Failed+uint64(got.PendingItems) {
		t.Fatalf("the counts do not add up: %v", m.j)
	}
	want := m.want
	want.Lock, want.Recovery = got.Lock, got.Recovery // of the opening
	want.Rotations, want.CurrentBytes, want.RetainedFiles = got.Rotations, got.CurrentBytes, got.RetainedFiles
	a, errA := json.Marshal(got)
	b, errB := json.Marshal(want)
	if errA != nil || errB != nil || string(a) != string(b) {
		t.Fatalf("status\n%s\nwant\n%s %v %v", a, b, errA, errB)
	}
	m.checkFiles(got)
}

// checkFiles: the files hold the last of the written frames, in order, each once, within the bounds.
func (m *model) checkFiles(got Status) {
	all := ""
	for n := m.want.Bounds.MaxFiles - 1; n >= 0; n-- {
		text, err := os.ReadFile(m.j.writer.shelf.prefix + generationName(m.j.writer.shelf.name, int64(n)))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			m.t.Fatal(err)
		}
		if int64(len(text)) > m.want.Bounds.MaxFileBytes || n == 0 && int64(len(text)) != got.CurrentBytes {
			m.t.Fatalf("generation %d has %d bytes, with %+v", n, len(text), got)
		}
		all += string(text)
	}
	want := ""
	for i := int(got.Written) - 1; i >= 0 && len(want) < len(all); i-- {
		want = fmt.Sprintf(`%s{"text":"%s","f":0}}`+"\n", appendFrameHead(nil, got.Epoch, uint64(i+1)), m.text[i]) + want
	}
	if all != want {
		m.t.Fatalf("the files hold\n%swant\n%s", all, want)
	}
}

// inMemory is a directory in which a sync costs nothing, if there is one.
func inMemory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "heirlock-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// A journal against the rules, one step at a time.
func TestModel(t *testing.T) {
	dir, n := inMemory(t), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		m := &model{t: t}
		opts := Options[item]{
			MaxEventBytes: 100, MaxPendingItems: rapid.IntRange(1, 12).Draw(t, "items"), MaxPendingBytes: rapid.Int64Range(300, 1500).Draw(t, "bytes"),
			MaxFileBytes: rapid.Int64Range(300, 700).Draw(t, "file"), MaxFiles: rapid.IntRange(1, 3).Draw(t, "files"),
			Validate: func(e item) error {
				if math.IsNaN(e.F) {
					return errors.New("not a number") // before it is found too large
				}
				return nil
			},
		}
		var err error
		if m.j, err = prepare(filepath.Join(dir, fmt.Sprintf("j%d", n)), opts); err != nil {
			t.Fatal(err)
		}
		m.want = Status{State: stateOpen, Epoch: m.j.Status().Epoch, Bounds: m.j.Status().Bounds}
		steps := rapid.StateMachineActions(m)
		steps["Submit again"], steps["Batch again"] = m.Submit, m.Batch // more often
		t.Repeat(steps)
		m.close()
		for m.want.PendingItems > 0 {
			m.Batch(t)
			m.Check(t)
		}
		if !m.over {
			m.end()
		}
		m.Check(t)
	})
}
