package transfer

import (
	"context"

	"gateway/transport"
)

// underway is how many writes wait for their answers.
const underway = 48

// remoteWrites are what is written to a file over its lanes.
type remoteWrites struct {
	ctx    context.Context
	lanes  lanes
	offset int64    // where the next one goes
	calls  []write  // without an answer yet
	free   [][]byte // to be used again
	holes  bool     // the last bytes may have been left out
	early  earlySync
}

type write struct {
	call *pending
	from []byte
}

// write sends a copy of b: the caller goes on to use it. Blocks of zeros become holes.
func (w *remoteWrites) write(b []byte) error {
	if w.holes = hollow(b); w.holes {
		w.offset += int64(len(b))
		return nil
	}
	for len(b) > 0 {
		n := min(len(b), w.lanes.first.link.block)
		if err := w.send(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// send sends what fits one request.
func (w *remoteWrites) send(b []byte) error {
	if len(w.calls) >= underway {
		if err := w.settleFirst(w.ctx); err != nil {
			return err
		}
	}
	var from []byte
	if n := len(w.free); n > 0 {
		from, w.free = w.free[n-1], w.free[:n-1]
	}
	from = append(from[:0], b...)
	offset, lane := w.offset, w.lanes.next()
	if lane.link.room.Acquire(w.ctx, int64(len(b))) != nil {
		return transport.Cause(w.ctx)
	}
	w.calls = append(w.calls, write{lane.link.begin(func() error {
		defer lane.link.room.Release(int64(len(from)))
		_, err := lane.file.WriteAt(from, offset)
		return err
	}), from})
	w.offset += int64(len(b))
	return nil
}

func (w *remoteWrites) settleFirst(ctx context.Context) error {
	first := w.calls[0]
	w.calls = w.calls[1:]
	if err := first.call.wait(ctx); err != nil {
		return err
	}
	w.free = append(w.free, first.from)
	return w.early.arrived(ctx, len(first.from), &w.lanes)
}

// settle waits until all that was written is there.
func (w *remoteWrites) settle(ctx context.Context) error {
	for len(w.calls) > 0 {
		if err := w.settleFirst(ctx); err != nil {
			return err
		}
	}
	return nil
}

// lengthen makes the zeros at the end that were left out. It blocks until that is answered.
func (w *remoteWrites) lengthen() error {
	if !w.holes {
		return nil
	}
	return w.lanes.first.file.Truncate(w.offset)
}

// leave gives up the second lane.
func (w *remoteWrites) leave() { w.lanes.leave(w.early.last) }

// An earlySync has what is there of a file written to the disk while more comes. A second
// channel that carries some of that has no time for it.
type earlySync struct {
	dirty int      // bytes that the disk was not told about
	last  *pending // the last time that it was
}

// arrived adds to what is there.
func (s *earlySync) arrived(ctx context.Context, n int, l *lanes) error {
	s.dirty += n
	second := l.second.Load()
	if s.dirty < early || l.far || second == nil || !second.link.has(fsync) {
		return nil
	}
	if s.last != nil && !s.last.over() {
		return nil
	}
	if err := s.wait(ctx); err != nil {
		return err
	}
	s.dirty = 0
	s.last = second.link.begin(second.file.Sync)
	return nil
}

// wait waits for the last one. The system may tell only one of those who ask that the disk
// has failed.
func (s *earlySync) wait(ctx context.Context) error {
	if s.last == nil {
		return nil
	}
	return s.last.wait(ctx)
}
