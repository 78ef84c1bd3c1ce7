package transfer

import (
	"context"
	"crypto/sha256"
	"hash"
	"sync"
)

// segment is how much of a file the target hashes at a time, while the rest is
// still under way. It is more than can be under way, so that all of a segment
// has arrived when the next one is sent.
const segment = 32 << 20

// A checker hashes what is copied, and compares that with what both machines
// have.
type checker struct {
	*fileCopy
	ctx  context.Context
	part string
	stop context.CancelFunc

	whole hash.Hash // from where the copy began
	piece hash.Hash // the segment; nil: the target needs no check
	from  int64     // where the segment begins
	size  int64     // its length so far
	ended *stretch  // the segment before, which nobody was asked about

	asked sync.WaitGroup
	mu    sync.Mutex
	wrong error // guarded by mu

	theirs chan sourceSum // of the source; nil: not asked
}

type stretch struct {
	from, to int64
	sum      Sum
}

type sourceSum struct {
	sum Sum
	err error
}

func newChecker(ctx context.Context, f *fileCopy, part string) *checker {
	c := &checker{fileCopy: f, part: part, whole: sha256.New(), from: f.at}
	c.ctx, c.stop = context.WithCancel(ctx)
	if f.info.Size <= Small {
		return c
	}
	if f.To.About().Via != viaLocal {
		c.piece = sha256.New()
	}
	if h, ok := f.From.(interface{ Hashes(context.Context) bool }); ok {
		c.theirs = make(chan sourceSum, 1)
		c.asked.Go(func() {
			if !h.Hashes(c.ctx) {
				close(c.theirs)
				return
			}
			sum, err := f.From.Sum(c.ctx, f.task.from, f.at, -1)
			c.theirs <- sourceSum{sum, err}
		})
	}
	return c
}

// close waits for what is under way.
func (c *checker) close() {
	c.stop()
	c.asked.Wait()
}

func (c *checker) write(b []byte) {
	_, _ = c.whole.Write(b) // never fails
	if c.piece == nil {
		return
	}
	for len(b) > 0 {
		n := min(int64(len(b)), segment-c.size)
		_, _ = c.piece.Write(b[:n])
		b = b[n:]
		if c.size += n; c.size < segment {
			return
		}
		c.ask()
		c.ended = &stretch{c.from, c.from + c.size, Sum(c.piece.Sum(nil))}
		c.from, c.size = c.from+c.size, 0
		c.piece.Reset()
	}
}

// ask has the target hash the segment that ended last.
func (c *checker) ask() {
	if c.ended == nil {
		return
	}
	e := *c.ended
	c.ended = nil
	c.asked.Go(func() {
		sum, err := c.To.Sum(c.ctx, c.part, e.from, e.to)
		if err == nil && sum != e.sum {
			err = mismatch(c.To.About().Name, c.task.to)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.wrong == nil {
			c.wrong = err
		}
	})
}

// target compares the rest with what the target has stored.
func (c *checker) target() error {
	c.ask()
	c.ended = &stretch{c.from, -1, Sum(c.whole.Sum(nil))}
	if c.piece != nil {
		c.ended.sum = Sum(c.piece.Sum(nil))
	}
	c.ask()
	c.asked.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wrong
}

// source looks whether the source still has what was read of it. One that has
// only grown has.
func (c *checker) source(content Content, n int64) error {
	ours := Sum(c.whole.Sum(nil))
	if c.theirs != nil {
		theirs, asked := <-c.theirs
		switch {
		case asked && theirs.err != nil:
			return theirs.err
		case asked && theirs.sum == ours:
			return nil
		}
		if !asked {
			c.theirs = nil
		}
	}
	changed, err := content.Changed(c.ctx)
	if err != nil || !changed && c.theirs == nil || c.info.Size == 0 {
		return err
	}
	sum, err := c.From.Sum(c.ctx, c.task.from, c.at, c.at+n)
	switch {
	case err != nil:
		return err
	case sum == ours:
		return nil
	case changed:
		return c.hasChanged()
	}
	return mismatch(c.To.About().Name, c.task.to)
}
