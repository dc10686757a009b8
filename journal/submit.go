package journal

import "context"

// Submit accepts an event or refuses it with a *RefusedError, without waiting for anything but the encoding of the event:
// never for the disk. (While the writer is behind, it lets other goroutines run now and then, of which the writer is one.) An accepted event will be in the file, in the order of the sequences, unless the journal fails.
func (j *Journal[T]) Submit(event T) (Receipt, error) {
	e, text, err := j.encode(event)
	if err != nil {
		return Receipt{}, err
	}
	r, err := j.ledger.admit(text)
	j.encoders.Put(e)
	return r, err
}

// SubmitWait is Submit that waits for room while the pending bounds are exhausted. Those who wait are served in their
// order. A wait that ends with its context returns the cause of that, and is counted nowhere: the event was neither
// accepted nor refused.
func (j *Journal[T]) SubmitWait(ctx context.Context, event T) (Receipt, error) {
	if ctx.Err() != nil {
		return Receipt{}, context.Cause(ctx)
	}
	e, text, err := j.encode(event)
	if err != nil {
		return Receipt{}, err
	}
	r, err := j.ledger.admitWaiting(ctx, text)
	j.encoders.Put(e)
	return r, err
}

// encode encodes an event, unless the journal is over. The text is valid until the encoder is put back, which happens
// only after a success: what a failed one has become used to is not worth keeping.
func (j *Journal[T]) encode(event T) (*encoder[T], []byte, error) {
	if j.ledger.over.Load() {
		return nil, nil, j.ledger.refuse(ErrClosed, nil)
	}
	e, _ := j.encoders.Get().(*encoder[T])
	if e == nil {
		e = newEncoder[T](j.maxEvent)
	}
	text, reason, cause := e.encode(event, j.validate)
	if reason != nil {
		return nil, nil, j.ledger.refuse(reason, cause)
	}
	return e, text, nil
}
