package ends

import (
	"io"
	"sync"
)

// DefaultLimit is how many bytes of a stream are kept where nobody says how many.
const DefaultLimit = 1 << 20

// A Spool takes the whole of a stream of which only the ends are kept.
type Spool interface {
	io.WriteCloser
	// Name returns the path of the file, or the empty string when it turned out
	// that it does not hold the whole stream.
	Name() string
}

// Spooled keeps the ends of a stream up to a limit, and everything in a spool
// once that is passed. Methods may be called concurrently.
type Spooled struct {
	open func() Spool

	mu     sync.Mutex // guards what follows
	ends   Ends
	last   byte // the last byte written
	spool  Spool
	closed bool
}

// NewSpooled returns one for limit bytes; zero means [DefaultLimit]. open opens the
// spool, once; it may be nil, and may return nil: then there is none.
func NewSpooled(limit int, open func() Spool) *Spooled {
	if limit <= 0 {
		limit = DefaultLimit
	}
	limit = max(limit, 2) // a head and a tail
	return &Spooled{open: open, ends: Ends{Head: limit - limit/2, Tail: limit / 2}}
}

// Add adds b. It reports whether the bytes were taken: after Finish they no longer
// belong to this stream.
func (s *Spooled) Add(b []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if len(b) == 0 {
		return true
	}
	if s.open != nil && s.ends.Whole() && !s.ends.fits(len(b)) {
		if s.spool = s.open(); s.spool != nil {
			_, _ = s.spool.Write(s.ends.Bytes()) // a spool that fails says so in its Name
		}
	}
	if s.spool != nil {
		_, _ = s.spool.Write(b) // as above
	}
	s.ends.Add(b)
	s.last = b[len(b)-1]
	return true
}

// Unfinished reports whether the stream ends in the middle of a line.
func (s *Spooled) Unfinished() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ends.Total() > 0 && s.last != '\n'
}

// Total returns how many bytes have come.
func (s *Spooled) Total() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ends.Total()
}

// Bytes returns a copy of what is kept.
func (s *Spooled) Bytes() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ends.Bytes()
}

// A Stream is what a finished one holds.
type Stream struct {
	Data      []byte
	Total     int64
	Truncated bool
	Spool     string // the path of the file with all of it, if there is one
}

// Finish closes the spool, and returns what there is. It may be called again.
func (s *Spooled) Finish() Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	stream := Stream{Data: s.ends.Bytes(), Total: s.ends.Total(), Truncated: !s.ends.Whole()}
	if s.spool != nil {
		if !s.closed {
			s.spool.Close()
		}
		stream.Spool = s.spool.Name()
	}
	s.closed = true
	return stream
}
