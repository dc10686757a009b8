package journal

import (
	"bytes"
	"errors"
	"runtime"
	"testing"

	"pgregory.net/rapid"
)

// The queue gives back what was put into it, in any portions, and holds no more memory than it says: the blocks that the
// most bytes filled, and three.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var want []byte
		var most int64
		next := byte(0)
		ordered := false
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				if len(want) > 8*blockBytes {
					t.Skip("enough")
				}
				p := make([]byte, rapid.SampledFrom([]int{1, 300, blockBytes - 1, blockBytes, blockBytes + 1, 3*blockBytes + 7}).Draw(t, "bytes"))
				for i := range p {
					p[i] = next
					next += 3
				}
				window := q.window(nil, 2*blockBytes)
				held := bytes.Join(window, nil)
				q.put(p)
				if !bytes.Equal(bytes.Join(window, nil), held) {
					t.Fatal("a window changed under a put")
				}
				want = append(want, p...)
				most = max(most, q.bytes)
			},
			"reserve": func(t *rapid.T) {
				n := rapid.SampledFrom([]int{1, 300, blockBytes / 2, blockBytes - 1, blockBytes, blockBytes + 1}).Draw(t, "bytes")
				room := 0
				if q.tail != nil {
					room = blockBytes - q.tail.n
				}
				p := q.reserve(n)
				if fits := n <= room; fits != (p != nil) {
					t.Fatalf("reserved %d bytes of %d: %v", n, room, p != nil)
				}
				if p != nil {
					next += 7
					want = append(want, bytes.Repeat([]byte{next}, n)...)
					_ = append(p, want[len(want)-n:]...)
					most = max(most, q.bytes)
				}
			},
			"order": func(t *rapid.T) {
				half := q.tail != nil && q.tail.n >= blockBytes/2
				if got, want := q.order(), !ordered && half && q.free == nil; got != want {
					t.Fatalf("orders a block: %v, want %v", got, want)
				} else if got {
					ordered = true
				}
			},
			"deliver": func(t *rapid.T) {
				if ordered {
					ordered = false
					q.deliver(newBlock())
				}
			},
			"release": func(t *rapid.T) {
				if rapid.IntRange(0, 20).Draw(t, "rarely") > 0 {
					t.Skip()
				}
				q.release()
				if ordered {
					ordered = false
					q.deliver(newBlock())
				}
				if q != (queue{}) {
					t.Fatalf("holds on to memory after a release: %+v", q)
				}
				want, most = nil, int64(0)
			},
			"drop": func(t *rapid.T) {
				n := rapid.IntRange(0, len(want)).Draw(t, "bytes")
				q.drop(int64(n))
				want = want[n:]
			},
			"": func(t *rapid.T) {
				if q.bytes != int64(len(want)) {
					t.Fatalf("%d bytes, want %d", q.bytes, len(want))
				}
				n := rapid.Int64Range(0, q.bytes+1).Draw(t, "window")
				if got := bytes.Join(q.window(nil, n), nil); !bytes.Equal(got, want[:min(int64(len(want)), n)]) {
					t.Fatalf("a window of %d bytes of %d is wrong", n, len(want))
				}
				blocks := int64(0)
				for _, list := range []*block{q.head, q.free} {
					for b := list; b != nil; b = b.next {
						blocks++
					}
				}
				if blocks > most/blockBytes+3 {
					t.Fatalf("%d blocks for at most %d bytes", blocks, most)
				}
			},
		})
	})
}

// What was filled once is filled again: a queue that has grown allocates no more.
func TestQueueUsesItsBlocksAgain(t *testing.T) {
	var q queue
	p := make([]byte, 3*blockBytes/2)
	if n := testing.AllocsPerRun(100, func() {
		q.put(p)
		q.put(p)
		q.drop(int64(len(p)))
		q.drop(int64(len(p)))
	}); n > 0 {
		t.Errorf("%v allocations for each round", n)
	}
}

// A producer that waits for room is not kept waiting by page faults: the next block is made while the one before is
// being filled, and whoever fills it up finds it there.
func TestLedgerMakesBlocksAhead(t *testing.T) {
	l := newLedger("0198f2c4-7b1a-4c3e-9a55-3f1d2b6c8e90", bounds{MaxPendingItems: 1 << 20, MaxPendingBytes: 1 << 30}, nil)
	event := bytes.Repeat([]byte{'1'}, 1000)
	for range 10 * blockBytes / 1000 {
		if _, err := l.admit(event); err != nil {
			t.Fatal(err)
		}
		if b := l.pending.tail; b.n >= blockBytes/2 && l.pending.free == nil {
			t.Fatalf("none is ready behind one with %d bytes", b.n)
		}
	}
	l.fail(phaseWrite, errors.New("the disk is full"))
	if l.pending != (queue{}) {
		t.Errorf("a failed journal holds on to memory: %+v", l.pending)
	}
}

// One processor, kept busy by those who submit, as fast as they go: the writer has its turns nevertheless, and nothing is
// refused that it could have written. Without them it has one in ten milliseconds.
func TestSubmittersLetTheWriterRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, c := range []struct {
		bounds bounds
		event  int
	}{
		{bounds{MaxPendingItems: 1 << 20, MaxPendingBytes: 8 << 20}, 10_000},
		{bounds{MaxPendingItems: 1 << 20, MaxPendingBytes: 256 << 10}, 1000},
		{bounds{MaxPendingItems: 200, MaxPendingBytes: 8 << 20}, 10},
	} {
		l, done := newLedger("0198f2c4-7b1a-4c3e-9a55-3f1d2b6c8e90", c.bounds, nil), make(chan struct{})
		turns := 0
		go func() {
			defer close(done)
			for range l.kick {
				for upto, more := l.begin(false); more && l.isPending(upto); turns++ {
					pieces := l.oldest(nil, batchBytes)
					n := wholeFrames(pieces, batchBytes)
					l.settle(n, lineFeeds(limited(pieces, n)), 0, false)
				}
			}
		}()
		event, submitted := bytes.Repeat([]byte{'1'}, c.event), uint64(0)
		for range 20 * min(c.bounds.MaxPendingItems, int(c.bounds.MaxPendingBytes)/c.event) { // many times what may be pending
			submitted++
			if _, err := l.admit(event); err != nil && !errors.Is(err, ErrItemCapacity) && !errors.Is(err, ErrByteCapacity) {
				t.Fatal(err)
			}
		}
		close(l.kick)
		<-done
		if s := l.status(); s.Received != submitted || s.Refused > submitted/10 {
			t.Errorf("%+v: %d of %d were refused, in %d turns of the writer", c.bounds, s.Refused, s.Received, turns)
		}
	}
}
