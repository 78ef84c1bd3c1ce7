package transfer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io/fs"
	"slices"
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

	whole hash.Hash // from where the copy began; nil: the segments tell
	piece hash.Hash // the segment; nil: the target needs no check
	from  int64     // where the segment begins
	size  int64     // its length so far
	ended []stretch // the segments so far; the target was asked about all but the last
	holes bool      // blocks were left out: the segment does not end

	queue   chan []byte // blocks of a larger file, to be hashed
	hashing sync.WaitGroup

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
	hashed bool // by the machine itself
	sum    Sum
	err    error
}

func newChecker(ctx context.Context, f *fileCopy, part string) *checker {
	c := &checker{fileCopy: f, part: part, whole: sha256.New(), from: f.at}
	c.ctx, c.stop = context.WithCancel(ctx)
	if f.info.Size <= Small {
		return c
	}
	h, ok := f.From.(selfHashing)
	if f.To.About().Via != viaLocal {
		c.piece = sha256.New()
		if !ok { // a second hash of everything would cost as much again
			c.whole = nil
		}
	}
	if ok {
		c.theirs = make(chan sourceSum, 1)
		c.asked.Go(func() {
			s := sourceSum{hashed: h.Hashes(c.ctx)}
			if s.hashed {
				s.sum, s.err = f.From.Sum(c.ctx, f.task.from, f.at, -1)
			}
			c.theirs <- s
		})
	}
	return c
}

// close waits for what is under way.
func (c *checker) close() {
	c.stop()
	c.asked.Wait()
}

// write takes the block that comes next, and says to free when it is done with it.
// A larger file is hashed beside its being written, by another processor.
func (c *checker) write(b []byte, free func([]byte)) {
	if c.info.Size <= Small {
		c.add(b)
		free(b)
		return
	}
	if c.queue == nil {
		c.queue = make(chan []byte, queued)
		c.hashing.Go(func() {
			for b := range c.queue {
				c.add(b)
				free(b)
			}
		})
	}
	c.queue <- b
}

// wait returns when all has been hashed.
func (c *checker) wait() {
	if c.queue != nil {
		close(c.queue)
		c.hashing.Wait()
	}
}

func (c *checker) add(b []byte) {
	if c.whole != nil {
		_, _ = c.whole.Write(b) // never fails
	}
	if c.piece == nil {
		c.size += int64(len(b))
		return
	}
	// Of a file with holes nothing says how much has arrived before it has its
	// whole length, so the rest is one segment.
	c.holes = c.holes || hollow(b)
	for len(b) > 0 {
		n := int64(len(b))
		if !c.holes {
			n = min(n, segment-c.size)
		}
		_, _ = c.piece.Write(b[:n])
		b = b[n:]
		if c.size += n; c.holes || c.size < segment {
			return
		}
		c.askLast()
		c.ended = append(c.ended, c.rest())
		c.from, c.size = c.from+c.size, 0
		c.piece.Reset()
	}
}

// askLast has the target hash the segment that ended last.
func (c *checker) askLast() {
	if n := len(c.ended); n > 0 {
		c.ask(c.ended[n-1])
	}
}

// ask has the target hash a segment.
func (c *checker) ask(e stretch) {
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

// rest is what has come since the last segment.
func (c *checker) rest() stretch {
	return stretch{c.from, c.from + c.size, Sum(cmp.Or(c.piece, c.whole).Sum(nil))}
}

// target compares the rest with what the target has stored.
func (c *checker) target() error {
	c.askLast()
	e := c.rest()
	e.to = -1 // there is to be no more of it
	c.ask(e)
	c.asked.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wrong
}

// source looks whether the source still has what was read of it. One that has
// only grown has. It comes before target.
func (c *checker) source(content Content, n int64) error {
	read := append(slices.Clip(c.ended), c.rest())
	if c.whole != nil {
		read = []stretch{{c.at, c.at + n, Sum(c.whole.Sum(nil))}}
	}
	var theirs sourceSum
	if c.theirs != nil {
		theirs = <-c.theirs
	}
	if theirs.err != nil {
		return c.unlessReplaced(theirs.err)
	}
	same := theirs.hashed && theirs.sum == read[0].sum
	if same && c.at == 0 {
		return nil
	}
	changed, err := content.Changed(c.ctx)
	if err != nil {
		return err
	}
	if c.at > 0 && (changed || c.stale) { // what was there has been compared with what it was then
		switch still, err := c.sameRange(c.ctx, c.part, 0, c.at); {
		case err != nil:
			return err
		case !still:
			return c.hasChanged()
		}
	}
	if same || !changed && !theirs.hashed || c.info.Size == 0 {
		return nil
	}
	for _, e := range read {
		switch sum, err := c.From.Sum(c.ctx, c.task.from, e.from, e.to); {
		case err != nil:
			return c.unlessReplaced(err)
		case sum == e.sum:
		case changed:
			return c.hasChanged()
		default:
			// Where times are whole seconds, a file is written to twice without a trace.
			return c.unlessReplaced(refuse(codeMismatch, "it may have been written to while it was read: copy it again, or else look at the disk and the memory of the machine",
				"%s: what was read is not what it has", Show(c.From.About().Name, c.task.from)))
		}
	}
	return nil
}

// unlessReplaced is an error about the source, unless its name is another file's since it
// was opened, or nobody's: what has the name is what was hashed.
func (c *checker) unlessReplaced(err error) error {
	info, failed := c.From.Stat(c.ctx, c.task.from, true)
	if errors.Is(failed, fs.ErrNotExist) || failed == nil && differs(info, c.info) {
		return c.hasChanged()
	}
	return err
}
