// Package redact takes secrets out of what is shown: of whole texts, and of
// streams that come in pieces. A secret is found as it is and in the forms that
// programs give it: base64, URL, shell, JSON, HTML and hexadecimal quoting. So is
// each line of it, without the blanks around it.
//
// It guards against accidents, not against a program that means to show a
// secret: one with colours in its midst, or spelled backwards, is not found.
package redact

import (
	"strings"
	"sync"
	"sync/atomic"
)

// Mask stands in the place of a secret.
const Mask = "********"

// Min is the length in bytes below which nothing is taken for a secret: every
// second line has a "y".
const Min = 4

// bare is a secret as it is looked for: without the line ends around it.
func bare(secret string) string { return strings.Trim(secret, "\r\n") }

// Maskable reports whether a text is long enough to be taken for a secret.
func Maskable(secret string) bool { return len(bare(secret)) >= Min }

// A Set is the secrets that are known. Its methods may be called concurrently;
// the zero value has none.
type Set struct {
	mu      sync.Mutex
	secrets map[string]bool // guarded by mu
	current atomic.Pointer[automaton]
}

// New returns a set of secrets.
func New(secrets ...string) *Set {
	s := &Set{}
	s.Add(secrets...)
	return s
}

// Add adds secrets. Those that are not [Maskable] are left out. What streams hold
// back is looked through for them as well.
func (s *Set) Add(secrets ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	added := false
	for _, secret := range secrets {
		if secret = bare(secret); !Maskable(secret) || s.secrets[secret] {
			continue
		}
		if s.secrets == nil {
			s.secrets = map[string]bool{}
		}
		s.secrets[secret], added = true, true
	}
	if !added {
		return
	}
	var all []string
	for secret := range s.secrets {
		all = append(all, forms(secret)...)
	}
	s.current.Store(build(all))
}

// String returns a text without the secrets.
func (s *Set) String(text string) string {
	if s == nil || s.current.Load() == nil {
		return text
	}
	return string(s.Bytes([]byte(text)))
}

// Bytes returns a text without the secrets. The result may be b itself.
func (s *Set) Bytes(b []byte) []byte {
	if s == nil || s.current.Load() == nil {
		return b
	}
	stream := s.Stream()
	out := stream.Next(b)
	return append(out, stream.Rest()...)
}

// A Stream is a text that comes in pieces. Its methods must not be called
// concurrently.
type Stream struct {
	set    *Set
	using  *automaton
	at     int32  // its state
	held   []byte // what may be part of a secret
	hidden []bool // which of held are
	masked bool   // the last that was handed out was a mask, which goes on
}

// Stream returns a stream of which nothing has come yet.
func (s *Set) Stream() *Stream { return &Stream{set: s} }

// Next takes a piece and returns what may be shown by now. It holds back what
// may be the beginning of a secret, and so never more than the longest one. The
// result is valid until the next call; b is not kept.
func (s *Stream) Next(b []byte) []byte {
	if s.set == nil {
		return b
	}
	if current := s.set.current.Load(); current != s.using {
		// There is one more secret: what is held may have its beginning.
		held, hidden := s.held, s.hidden
		s.using, s.at, s.held, s.hidden = current, 0, nil, nil
		return append(s.feed(held, hidden), s.feed(b, nil)...)
	}
	if s.using == nil {
		return b
	}
	return s.feed(b, nil)
}

// Rest returns what was held back, of a stream that has ended or pauses.
func (s *Stream) Rest() []byte {
	out := s.release(nil, len(s.held))
	s.at, s.masked = 0, false
	return out
}

// feed takes bytes, of which some may be hidden already.
func (s *Stream) feed(b []byte, hidden []bool) []byte {
	out := make([]byte, 0, len(b)+len(Mask))
	for i := 0; i < len(b); i++ {
		if s.at == 0 && len(s.held) == 0 && hidden == nil {
			// Nothing is open: go on to the next byte that begins a secret.
			from := i
			for i < len(b) && s.using.root[b[i]] == 0 {
				i++
			}
			if i > from {
				out, s.masked = append(out, b[from:i]...), false
			}
			if i == len(b) {
				break
			}
		}
		s.held = append(s.held, b[i])
		s.hidden = append(s.hidden, hidden != nil && hidden[i])
		s.at = s.using.step(s.at, b[i])
		for n := len(s.hidden) - s.using.found(s.at); n < len(s.hidden); n++ {
			s.hidden[n] = true
		}
		if free := len(s.held) - s.using.depth(s.at); free > 0 {
			out = s.release(out, free)
		}
	}
	return out
}

// release hands out the first n bytes that are held.
func (s *Stream) release(out []byte, n int) []byte {
	for i, c := range s.held[:n] {
		switch {
		case !s.hidden[i]:
			out = append(out, c)
		case !s.masked:
			out = append(out, Mask...)
		}
		s.masked = s.hidden[i]
	}
	s.held = s.held[:copy(s.held, s.held[n:])]
	s.hidden = s.hidden[:copy(s.hidden, s.hidden[n:])]
	return out
}
