package script

import (
	"fmt"
	"slices"
	"sync"

	"gateway/internal/phrase"
	"gateway/internal/redact"
	"gateway/session"
)

// keep is how much of a stream's head, and of its tail, a report has.
const keep = 256 << 10

// A capture is what is shown of one stream of a step: bounded, and without
// secrets.
type capture struct {
	mu     sync.Mutex // streams come concurrently with the ends of others
	stream *redact.Stream
	head   []byte // both with a margin, for the cut
	tail   []byte
	total  int64
	show   func([]byte)
}

func newCapture(mask *redact.Set, show func([]byte)) *capture {
	return &capture{stream: mask.Stream(), show: show}
}

func (c *capture) write(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(c.stream.Next(b))
}

// flush takes what was held back: nothing more of that text will come.
func (c *capture) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(c.stream.Rest())
}

func (c *capture) add(b []byte) {
	if len(b) == 0 {
		return
	}
	if c.show != nil {
		c.show(b)
	}
	c.total += int64(len(b))
	if room := keep + phrase.Margin - len(c.head); room > 0 {
		n := min(room, len(b))
		c.head, b = append(c.head, b[:n]...), b[n:]
	}
	if c.tail = append(c.tail, b...); len(c.tail) > 2*keep {
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-keep-phrase.Margin:]...)
	}
}

// bytes returns what was kept, and says how much is left out.
func (c *capture) bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Concat(c.head, c.tail)
	if c.total <= 2*keep {
		return all
	}
	head, tail := phrase.Ends(all, all, keep, keep)
	left := c.total - int64(len(head)+len(tail))
	return fmt.Appendf(slices.Clone(head), "\n[%d bytes left out]\n%s", left, tail)
}

// captures are those of a step, by stream.
type captures [3]*capture

func newCaptures(mask *redact.Set, show func(session.Stream, []byte)) captures {
	var all captures
	for i := range all {
		all[i] = newCapture(mask, func(b []byte) { show(session.Stream(i), b) })
	}
	return all
}

func (c captures) flush() {
	for _, one := range c {
		one.flush()
	}
}
