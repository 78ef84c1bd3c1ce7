package transfer

import (
	"io"
	"sync"
)

// buffers are for what goes in one piece, and for what does not.
var (
	smallBuffers = sync.Pool{New: func() any { b := make([]byte, Small+1); return &b }}
	largeBuffers = sync.Pool{New: func() any { b := make([]byte, block); return &b }}
)

// queued is how many blocks of a file wait to be hashed.
const queued = 4

// A lender gives what is in a file block by block, in memory of its own.
type lender interface {
	// lend returns what comes next, no more than most of it. A block that was freed
	// may be lent again.
	lend(most int64) ([]byte, error)
	// free takes a block back. Any goroutine may call it.
	free([]byte)
}

// blocks lends what a reader gives. One is read into or written from; the others are
// hashed, or wait for that.
type blocks struct {
	from  io.Reader
	pool  *sync.Pool
	taken []*[]byte
	spare chan []byte
}

func newBlocks(from io.Reader, pool *sync.Pool) *blocks {
	return &blocks{from: from, pool: pool, spare: make(chan []byte, queued+2)}
}

func (s *blocks) lend(most int64) ([]byte, error) {
	if len(s.spare) == 0 && len(s.taken) < cap(s.spare) {
		b := s.pool.Get().(*[]byte)
		s.taken = append(s.taken, b)
		s.spare <- *b
	}
	b := <-s.spare
	n, err := io.ReadFull(s.from, b[:min(int64(len(b)), most)])
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return b[:n], err
}

func (s *blocks) free(b []byte) { s.spare <- b[:cap(b)] }

// close is called when all blocks have been freed.
func (s *blocks) close() {
	for _, b := range s.taken {
		s.pool.Put(b)
	}
}
