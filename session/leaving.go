package session

import "time"

// A leaving notices that the shell is gone where its terminal is not. A subshell
// that it left behind holds the terminal, or the pipes in its place, for as long
// as it likes: dash, mksh, zsh and busybox ash on a local terminal, and any shell
// without one.
type leaving struct {
	session *Session
	run     *run
	gone    <-chan struct{} // closed when the shell is gone; nil once that is known
	quiet   <-chan time.Time
	heard   int64
}

// leavingGrace is how long nothing may come behind the shell's end before its
// terminal is let go.
const leavingGrace = 100 * time.Millisecond

func newLeaving(s *Session, r *run) *leaving {
	return &leaving{session: s, run: r, gone: s.terminal.Done()}
}

// begin waits for what is still on its way.
func (l *leaving) begin() {
	l.run.noteLeft()
	l.gone, l.heard, l.quiet = nil, l.session.heard.Load(), time.After(leavingGrace+l.session.trip)
}

// noteLeft notes when the shell was first seen to be gone.
func (r *run) noteLeft() {
	if r.left.IsZero() {
		r.left = time.Now()
	}
}

// look lets go of the terminal if nothing more has come, also not before an
// answer of the keeper's: a server may tell of the shell's end first, and then
// what the shell has said. The terminal's end follows. Who goes on writing to it
// is no reason to wait for ever.
func (l *leaving) look() {
	s, r := l.session, l.run
	quiet := !r.moves(&s.heard, &l.heard)
	if quiet {
		s.drain(r)
		quiet = !r.moves(&s.heard, &l.heard)
	}
	if !quiet && (time.Since(r.left) < drainGrace || r.delivering.Load() > 0) {
		l.begin()
		return
	}
	l.quiet = nil
	s.terminal.Close()
}

// endIdle ends the session once no command runs.
func (s *Session) endIdle() {
	select {
	case s.turn <- struct{}{}:
		within(leavingGrace+s.trip, s.ended) // what it said last may be on its way
		s.end()
		<-s.turn
	case <-s.ended:
	}
}
