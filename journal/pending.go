package journal

// blockBytes makes a block exactly 64 KiB, which is a size class of the allocator.
const blockBytes = 64<<10 - 16

// block is one piece of the memory that holds pending frames.
type block struct {
	next *block
	n    int // filled; only ever grows until the block is taken out
	data [blockBytes]byte
}

// newBlock makes a block whose pages are there. Else each would be made by the first frame that touches it, under the
// lock, where one page fault costs more than the frame and all other producers wait for it.
func newBlock() *block {
	b := new(block)
	for i := 0; i < len(b.data); i += 4096 {
		b.data[i] = 1
	}
	return b
}

// queue holds the bytes of the pending frames, in order. A frame may lie across blocks: then memory is never more than
// the pending bytes and three blocks. Blocks are used again, the last one first, and never given back while the journal
// works: what it needed once is inside its bounds.
type queue struct {
	head, tail *block
	off        int // how much of the head is gone
	bytes      int64
	free       *block
	ordered    bool // somebody makes a block, outside the lock
}

// order reports whether a block will be wanted soon and nobody makes one yet. Whoever is told so makes it, and delivers it.
func (q *queue) order() bool {
	if q.ordered || q.free != nil || q.tail == nil || q.tail.n < blockBytes/2 {
		return false
	}
	q.ordered = true
	return true
}

// deliver takes a block that was ordered, unless all has been released meanwhile.
func (q *queue) deliver(b *block) {
	if q.ordered {
		b.next, q.free, q.ordered = q.free, b, false
	}
}

// reserve puts so many bytes in, in one piece that is to be appended to at once, or returns nil if there is none.
func (q *queue) reserve(n int) []byte {
	b := q.tail
	if b == nil || blockBytes-b.n < n {
		return nil
	}
	p := b.data[b.n : b.n : b.n+n]
	b.n += n
	q.bytes += int64(n)
	return p
}

func (q *queue) put(p []byte) {
	q.bytes += int64(len(p))
	for len(p) > 0 {
		if q.tail == nil || q.tail.n == blockBytes {
			q.grow()
		}
		n := copy(q.tail.data[q.tail.n:], p)
		q.tail.n += n
		p = p[n:]
	}
}

func (q *queue) grow() {
	b := q.free
	if b == nil {
		b = newBlock()
	} else {
		q.free, b.next = b.next, nil
	}
	if q.tail == nil {
		q.head = b
	} else {
		q.tail.next = b
	}
	q.tail = b
}

// window appends the oldest bytes, at most so many, in the pieces they lie in. They stay valid, and as they are, until
// they are dropped, whatever is put behind them meanwhile.
func (q *queue) window(pieces [][]byte, most int64) [][]byte {
	off := q.off
	for b := q.head; b != nil && most > 0; b = b.next {
		piece := b.data[off:b.n:b.n]
		piece = piece[:min(int64(len(piece)), most)]
		pieces = append(pieces, piece)
		most -= int64(len(piece))
		off = 0
	}
	return pieces
}

// drop takes the oldest bytes out.
func (q *queue) drop(n int64) {
	q.bytes -= n
	for n > 0 {
		b := q.head
		if here := int64(b.n - q.off); n < here {
			q.off += int(n)
			return
		} else {
			n -= here
		}
		q.head, q.off = b.next, 0
		if q.head == nil {
			q.tail = nil
		}
		b.n, b.next, q.free = 0, q.free, b
	}
}

// release forgets everything, memory included.
func (q *queue) release() { *q = queue{} }
