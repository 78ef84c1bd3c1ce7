package ssh

import (
	"io"
	"sync"
)

// The buffer of a pump is small, so that an idle session costs little. It doubles
// as long as it is filled, and comes back by halves.
const (
	minPump = 512
	maxPump = 64 << 10
)

// A stream is the reading end of a channel that can be let go. x/crypto
// unblocks a pending Read only when the peer confirms the channel's end, which
// a silent peer never does, and sshd not before the program has read its
// standard input. So a goroutine reads, and hands over one chunk at a time:
// what is not read stays in the channel's window, and then with the program.
type stream struct {
	mu      sync.Mutex // guards what follows, up to over
	changed sync.Cond
	chunk   []byte // the pump does not touch it until it is empty
	pumps   int    // that have not met the end
	end     error  // set by stop: what Read returns at once
	to      func([]byte)
	over    func(error)
	came    func() // called with what comes first

	writing sync.Mutex // held while to or over is called
	told    sync.Once  // over was called

	// final says what Read returns once everything has been read. It may block.
	final func() error
}

func newStream(pumps int, final func() error) *stream {
	s := &stream{pumps: pumps, final: final}
	s.changed.L = &s.mu
	return s
}

// Read implements [io.Reader].
func (s *stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	s.mu.Lock()
	for s.end == nil && len(s.chunk) == 0 && s.pumps > 0 {
		s.changed.Wait()
	}
	if s.end == nil && len(s.chunk) > 0 {
		n := copy(p, s.chunk)
		if s.chunk = s.chunk[n:]; len(s.chunk) == 0 {
			s.changed.Broadcast()
		}
		s.mu.Unlock()
		return n, nil
	}
	end := s.end
	s.mu.Unlock()
	if end != nil {
		return 0, end
	}
	return 0, s.final()
}

// Deliver implements [transport.Deliverer]: the pumps call to, and the last of
// them, or who stops the stream, end.
func (s *stream) Deliver(to func([]byte), end func(error)) {
	s.mu.Lock()
	s.to, s.over = to, end
	chunk, stopped, pumped := s.chunk, s.end, s.pumps == 0
	s.mu.Unlock()
	switch {
	case stopped != nil:
		go s.tell(stopped) // ends with the call of end
		return
	case len(chunk) > 0: // its pump waits until it has been taken
		s.call(chunk)
		s.mu.Lock()
		s.chunk = nil
		s.changed.Broadcast()
		s.mu.Unlock()
	}
	if pumped {
		go func() { s.tell(s.final()) }() // ends once the program has, and with the call of end
	}
}

// tell says, to whom it is delivered, that nothing more comes.
func (s *stream) tell(err error) {
	s.told.Do(func() {
		s.writing.Lock() // until the last call has returned
		defer s.writing.Unlock()
		s.over(err)
	})
}

// stop makes every Read return err, and lets the pumps end.
func (s *stream) stop(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil {
		s.end = err
		if s.over != nil {
			go s.tell(err) // ends with the last call
		}
	}
	s.changed.Broadcast()
}

// pump moves what r yields into the stream. It ends with r, or with stop as
// soon as r yields something.
func (s *stream) pump(r io.Reader) {
	buf := make([]byte, minPump)
	for first := true; ; first = false {
		n, err := r.Read(buf)
		if n > 0 && first {
			s.came()
		}
		if n > 0 && !s.put(buf[:n]) {
			return
		}
		if err != nil {
			break
		}
		switch {
		case n == len(buf) && n < maxPump:
			buf = make([]byte, 2*n)
		case n < len(buf)/8 && len(buf) > minPump:
			buf = make([]byte, len(buf)/2)
		}
	}
	s.mu.Lock()
	s.pumps--
	s.changed.Broadcast()
	last := s.pumps == 0 && s.over != nil && s.end == nil
	s.mu.Unlock()
	if last {
		s.tell(s.final())
	}
}

// put hands chunk over and waits until it has been taken; false means that
// nobody will.
func (s *stream) put(chunk []byte) bool {
	s.mu.Lock()
	for len(s.chunk) > 0 && s.end == nil {
		s.changed.Wait()
	}
	if s.to != nil {
		s.mu.Unlock()
		return s.call(chunk)
	}
	defer s.mu.Unlock()
	if s.end != nil {
		return false
	}
	s.chunk = chunk
	s.changed.Broadcast()
	for len(s.chunk) > 0 && s.end == nil {
		s.changed.Wait()
	}
	return s.end == nil
}

// call is put for Deliver.
func (s *stream) call(chunk []byte) bool {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	end := s.end
	s.mu.Unlock()
	if end == nil {
		s.to(chunk)
	}
	return end == nil
}
