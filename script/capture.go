package script

import (
	"fmt"
	"sync"

	"gateway/internal/ends"
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
	ends   ends.Ends
	show   func([]byte)
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
	c.show(b)
	c.ends.Add(b)
}

// bytes returns what was kept, and says how much is left out.
func (c *capture) bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	head, tail := c.ends.Parts()
	if c.ends.Whole() {
		return head
	}
	left := c.ends.Total() - int64(len(head)+len(tail))
	return fmt.Appendf(nil, "%s\n[%d bytes left out]\n%s", head, left, tail)
}

// captures are those of a step, by stream.
type captures [3]*capture

func newCaptures(mask *redact.Set, show func(session.Stream, []byte)) captures {
	var all captures
	for i := range all {
		all[i] = &capture{
			stream: mask.Stream(), ends: ends.Ends{Head: keep, Tail: keep},
			show: func(b []byte) { show(session.Stream(i), b) },
		}
	}
	return all
}

func (c captures) flush() {
	for _, one := range c {
		one.flush()
	}
}
