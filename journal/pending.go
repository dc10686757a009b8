package journal

// blockBytes makes a block exactly 64 KiB, which is a size class of the allocator.
const blockBytes = 64<<10 - 16

// block is one piece of the memory that holds pending frames.
type block struct {
	next *block
	n    int // filled; only ever grows until the block is taken out
	data [blockBytes]byte
}

// queue holds the bytes of the pending frames, in order. A frame may lie across blocks: then memory is never more than
// the pending bytes and two blocks. Blocks are used again, the last one first, and never given back while the journal
// works: what it needed once is inside its bounds.
type queue struct {
	head, tail *block
	off        int // how much of the head is gone
	bytes      int64
	free       *block
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
		b = new(block)
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
