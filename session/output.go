package session

import (
	"io"
	"sync"

	"gateway/internal/phrase"
)

// defaultLimit is how many bytes of a stream a [Result] keeps. Beyond it the
// middle is dropped: the end of a log matters as much as its beginning.
const defaultLimit = 1 << 20

// A Spool takes the whole of a stream that is longer than a Result keeps.
type Spool interface {
	io.WriteCloser
	// Name returns the path of the file, or the empty string when it turned out
	// that it does not hold the whole stream.
	Name() string
}

// output keeps one stream of one command: the head and the tail up to a limit,
// exact counts, and everything in a spool once the limit is passed. Methods
// may be called concurrently.
type output struct {
	limit int
	spool func() Spool // opens the spool; nil: none

	mu     sync.Mutex
	head   []byte // of which the last few bytes are there to see what a cut goes through
	tail   []byte // what is behind it; a ring once it is as long as it gets
	at     int    // where the ring's oldest byte is
	total  int64
	last   byte // the last byte written
	file   Spool
	closed bool
}

func newOutput(limit int, spool func() Spool) *output {
	if limit <= 0 {
		limit = defaultLimit
	}
	limit = max(limit, 2) // a head and a tail
	return &output{limit: limit, spool: spool}
}

// write adds b. It reports whether the bytes were taken: after finish they no
// longer belong to this command.
func (o *output) write(b []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	if len(b) == 0 {
		return true
	}
	if o.total+int64(len(b)) > int64(o.limit) && o.total <= int64(o.limit) && o.spool != nil {
		if o.file = o.spool(); o.file != nil {
			_, _ = o.file.Write(o.kept()) // a spool that fails says so in its Name
		}
	}
	if o.file != nil {
		_, _ = o.file.Write(b) // as above
	}
	o.total += int64(len(b))
	o.last = b[len(b)-1]
	if room := o.limit - o.limit/2 + phrase.Margin - len(o.head); room > 0 {
		n := min(room, len(b))
		o.head = append(o.head, b[:n]...)
		b = b[n:]
	}
	o.writeTail(b)
	return true
}

func (o *output) writeTail(b []byte) {
	size := o.limit/2 + phrase.Margin
	if len(b) >= size {
		b = b[len(b)-size:]
		o.tail, o.at = append(o.tail[:0], b...), 0
		return
	}
	if room := size - len(o.tail); room > 0 && o.at == 0 {
		n := min(room, len(b))
		o.tail = append(o.tail, b[:n]...)
		b = b[n:]
	}
	for len(b) > 0 {
		n := copy(o.tail[o.at:], b)
		b = b[n:]
		o.at = (o.at + n) % size
	}
}

// kept returns the head and the tail, cut between characters.
func (o *output) kept() []byte {
	all := make([]byte, 0, len(o.head)+len(o.tail))
	all = append(all, o.head...)
	all = append(all, o.tail[o.at:]...)
	all = append(all, o.tail[:o.at]...)
	if o.total <= int64(o.limit) {
		return all
	}
	first, last := phrase.Ends(all, all, o.limit-o.limit/2, o.limit/2)
	return append(first, last...)
}

// unfinished reports whether the stream ends in the middle of a line.
func (o *output) unfinished() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total > 0 && o.last != '\n'
}

// count returns how many bytes have come.
func (o *output) count() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total
}

// soFar returns a copy of what is kept.
func (o *output) soFar() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.kept()
}

// stream is what a finished output holds.
type stream struct {
	data      []byte
	total     int64
	truncated bool
	spool     string
}

// finish ends the output and returns what it holds. It may be called again.
func (o *output) finish() stream {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := stream{data: o.kept(), total: o.total, truncated: o.total > int64(o.limit)}
	if o.file != nil {
		if !o.closed {
			o.file.Close()
		}
		s.spool = o.file.Name()
	}
	o.closed = true
	return s
}
