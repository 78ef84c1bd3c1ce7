package session

import (
	"io"
	"maps"
	"regexp"
	"strings"

	"gateway/transport"
)

// How much a pump reads at once: little where little comes, for there may be
// thousands of sessions.
const (
	minRead = 512
	maxRead = 32 << 10
)

// pump has one stream read to its end, and hands out what comes: data to the
// command it belongs to, marks to who waits for them. Nobody else reads r. A
// command whose Output blocks blocks its stream, and with it the program on the
// far side. It returns at once; done is called behind the end.
func (s *Session) pump(r io.Reader, k *keeper, from Stream, done func()) {
	var marks scanner
	leave := s.enroll()
	data := func(b []byte) { s.data(k, from, b) }
	found := func(m mark) { s.found(from, m) }
	expected := func(kind byte, nonce []byte) bool { return s.expected(from, kind, nonce) }
	heard := &s.heard
	if k != nil {
		heard = &k.heard
	}
	take := func(b []byte) {
		heard.Add(1)
		marks.scan(b, expected, data, found)
	}
	end := func(error) { // how it ended is told where its program is
		marks.flush(data)
		done()
		leave()
	}
	if d, ok := r.(transport.Deliverer); ok {
		d.Deliver(take, end)
		return
	}
	go func() { end(readAll(r, take)) }() // ends with the stream
}

// readAll hands out what any other stream has, to its end.
func readAll(r io.Reader, to func([]byte)) error {
	buffer := make([]byte, minRead)
	for {
		n, err := r.Read(buffer)
		if n > 0 {
			to(buffer[:n])
		}
		switch {
		case n == len(buffer) && n < maxRead:
			buffer = make([]byte, 2*n)
		case n < len(buffer)/8 && len(buffer) > minRead:
			buffer = make([]byte, len(buffer)/2)
		}
		if err != nil {
			return err
		}
	}
}

// data delivers bytes that are no mark.
func (s *Session) data(k *keeper, from Stream, b []byte) {
	s.mu.Lock()
	if k == nil && s.ready {
		b = s.withoutNoise(s.undrawn(b[s.echo.follow(b):]))
	}
	r := s.owner(k, from)
	if r == nil {
		s.stray(k, from, b)
	}
	s.mu.Unlock()
	if r != nil && len(b) > 0 {
		r.write(from, b)
	}
}

// owner returns the command that bytes of a stream belong to, or nil. The caller holds
// Session.mu.
func (s *Session) owner(k *keeper, from Stream) *run {
	r := s.run
	switch {
	case r == nil, !r.takes(from):
		return nil
	case k == nil && (r.mute || s.owes()):
		return nil
	case k != nil && k != s.keeper: // of an earlier generation
		return nil
	}
	return r
}

// stray notes bytes that are no command's. The caller holds Session.mu.
func (s *Session) stray(k *keeper, from Stream, b []byte) {
	r := s.run
	switch {
	case len(b) == 0:
	case r != nil && k == nil && r.mute, r != nil && k == s.keeper && r.cut(from): // the engine's own
	case !s.ready: // sudo speaks on stderr
		s.noise = append(s.noise, b[:min(len(b), maxNoise-len(s.noise))]...)
	case k == nil:
		s.noisy = true
		s.idled = s.idled || loggedOut.Match(b)
	case k == s.keeper && s.script != nil:
		s.between.add(from, b)
	case k == s.keeper:
		s.late = true
	}
}

// undrawn takes off what the shell has said for each line of a frame, in front of what
// the command says. Over a slow link that may come when the command is over. The caller
// holds Session.mu.
func (s *Session) undrawn(b []byte) []byte {
	for s.draws > 0 && len(b) > 0 {
		off := len(attributesOff.Find(b))
		if s.draws--; off == 0 {
			s.draws = 0
		}
		b = b[off:]
	}
	return b
}

// attributesOff matches what terminals take for it (sgr0 of terminfo(5)).
var attributesOff = regexp.MustCompile(`\A(\x1b\(B)?(\x1b\[0?m)?\x0f?`)

// withoutNoise takes out what the shell says of no command. Where none runs, it
// answers with an empty line, so that the shell stays. The caller holds
// Session.mu, so no command begins before that is typed, but where nobody reads
// the terminal.
func (s *Session) withoutNoise(b []byte) []byte {
	if s.dialect.noise == nil || !s.dialect.noise.Match(b) {
		return b
	}
	if s.run == nil {
		s.typeKeys("\n")
	}
	return s.dialect.noise.ReplaceAll(b, nil)
}

// found delivers a mark to who waits for its nonce.
func (s *Session) found(from Stream, m mark) {
	m.from = from
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.kind == 'P' || m.kind == 'S' {
		s.owed = "" // or will not come any more: this stands behind it
	}
	if s.run != nil && m.nonce == s.run.nonce {
		s.run.take(m)
		return
	}
	r := s.replies[m.nonce]
	select {
	case r.marks <- m:
	default: // nobody waits (any more), or a forgery repeats itself
	}
	switch r.due--; {
	case r.due == 0:
		delete(s.replies, m.nonce)
	case r.due > 0:
		s.replies[m.nonce] = r
	}
}

// reply is a nonce that the engine has made, with the kinds of marks that may
// carry it.
type reply struct {
	kinds string
	marks chan mark // nil: nobody waits any more
	due   int       // so many come for sure, unless their keeper ends first
	of    *keeper
}

// expectLate announces so many marks that a keeper is told to write. They may be late, and
// commands may have come and gone: they are known until they are there, whoever still waits
// for them.
func (s *Session) expectLate(k *keeper, kind string, due int) (nonce string, marks <-chan mark) {
	nonce, to := newNonce(), make(chan mark, due)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !closed(k.ended) {
		s.replies[nonce] = reply{kinds: kind, marks: to, due: due, of: k}
	}
	return nonce, to
}

// dropLate forgets what a keeper that has ended did not bring.
func (s *Session) dropLate(k *keeper) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.replies, func(_ string, r reply) bool { return r.of == k })
}

// expect announces a nonce and returns where its marks will come.
func (s *Session) expect(kinds string) (nonce string, marks <-chan mark) {
	nonce, to := newNonce(), make(chan mark, 8)
	s.announce(nonce, reply{kinds: kinds, marks: to})
	return nonce, to
}

func (s *Session) announce(nonce string, r reply) {
	s.mu.Lock()
	s.replies[nonce] = r
	s.mu.Unlock()
}

// maxPast is how many nonces back a mark is still known as one: a prompt comes
// on a stream of its own, behind the marks that end the command.
const maxPast = 16

// outlive forgets a nonce after a while. Until then marks of these kinds are
// no output.
func (s *Session) outlive(nonce, kinds string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies[nonce] = reply{kinds: kinds}
	if s.past = append(s.past, nonce); len(s.past) > maxPast {
		delete(s.replies, s.past[0])
		s.past = s.past[1:]
	}
}

func (s *Session) forget(nonce string) {
	s.mu.Lock()
	delete(s.replies, nonce)
	s.mu.Unlock()
}

// expected reports whether somebody waits for a mark, and whether it can come
// on this stream: the prompt is on the terminal, and a command that prints its
// PS1 prints no prompt; everything else comes with the data.
func (s *Session) expected(from Stream, kind byte, nonce []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.replies[string(nonce)]
	onTerminal := kind == 'P' || kind == 'S' || kind == 'Q' || s.merged
	return ok && strings.IndexByte(r.kinds, kind) >= 0 && (kind == 'T' || onTerminal == (from == Terminal))
}
