package session

import "time"

// The terminal comes on a channel of its own, so the marks may overtake what a
// command writes there in the moment it ends. Three things bring it into the
// command's result, and none of them costs an ordinary command a wait:
//
//   - A local terminal knows when nothing is left in it.
//   - Behind a command that is likely to write there, or has, the prompt is a
//     mark too, and is waited for.
//   - Behind any other that may run a program, the prompt is such a mark, but
//     nobody waits for it. What comes before it and after the result is nobody's;
//     it is never the next command's.

// A settler is a terminal that can tell when all that was written to it has
// been read.
type settler interface {
	// Settle waits until what has been written by now was returned by Read, and
	// Read called again, but no longer than limit. It reports whether it was.
	Settle(limit time.Duration) bool
}

func (s *Session) settles() bool {
	_, ok := s.terminal.(settler)
	return ok
}

// settle makes the result of a command that has ended, with what it wrote to
// the terminal.
func (s *Session) settle(r *run) (Result, error) {
	begun := s.heard.Load()
	tail := tail{session: s, run: r, heard: begun}
	if t, ok := s.terminal.(settler); ok {
		for !t.Settle(promptGrace+s.trip) && tail.comes() && s.heard.Load()-begun < maxTail {
		}
	}
	awaited := r.loud && (r.awaited || r.outputs[Terminal].Total() > 0)
	if !awaited || s.progress(r).prompted {
		return s.over(r)
	}
	limit := owedGrace + s.trip // the prompt may be gone for good
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for {
		select {
		case <-r.wake:
			if s.progress(r).prompted {
				return s.over(r)
			}
		case <-s.ended:
			return s.shellEnded(r)
		case <-timeout.C:
			if !tail.comes() {
				return s.over(r)
			}
			timeout.Reset(limit)
		}
	}
}

// maxTail is more than a local terminal holds (12 KiB on Linux), in reads of minRead: a
// job may write to it for ever.
const maxTail = 64

// tail is what is still to come on the terminal of a command that has ended.
type tail struct {
	session *Session
	run     *run
	heard   int64     // reads of the terminal
	until   time.Time // when it is waited for no longer; zero: nothing is to end
}

// comes reports whether some of it has come since it was asked last, or waits for the
// caller. Who does not take it when the command is to end misses it.
func (t *tail) comes() bool {
	s, r := t.session, t.run
	toEnd := r.hurries() || s.closing.Load()
	switch {
	case !r.moves(&s.heard, &t.heard):
		return false
	case toEnd && t.until.IsZero():
		t.until = time.Now().Add(drainGrace)
	case toEnd && time.Now().After(t.until):
		r.cutShort.Store(r.delivering.Load() > 0)
		return false
	}
	return true
}

// owedGrace bounds the wait for a prompt that has fallen behind: a text may have
// taken it away for good.
const owedGrace = time.Second

// owe notes that a prompt is still to come: until then the terminal is the last command's.
// The caller holds mu.
func (s *Session) owe(nonce string) {
	s.owed, s.until = nonce, time.Now().Add(owedGrace+s.trip)
}

// owes reports whether what comes on the terminal is still the last command's.
// The caller holds mu.
func (s *Session) owes() bool { return s.owed != "" && time.Now().Before(s.until) }
