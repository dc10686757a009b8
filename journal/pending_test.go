package journal

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// The queue gives back what was put into it, in any portions, and holds no more memory than it says: the blocks that the
// most bytes filled, and two.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var want []byte
		var most int64
		next := byte(0)
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
				if blocks > most/blockBytes+2 {
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
