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
	// Read called again, but no longer than limit.
	Settle(limit time.Duration)
}

func (s *Session) settles() bool {
	_, ok := s.terminal.(settler)
	return ok
}

// settle makes the result of a command that has ended, with what it wrote to
// the terminal.
func (s *Session) settle(r *run) (Result, error) {
	if t, ok := s.terminal.(settler); ok {
		t.Settle(promptGrace + s.trip)
	}
	awaited := r.loud && (r.awaited || r.outputs[Terminal].Total() > 0)
	if !awaited || s.progress(r).prompted {
		return s.over(r)
	}
	timeout := time.NewTimer(promptGrace + s.trip)
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
			return s.over(r)
		}
	}
}

// owedGrace bounds the wait for a prompt that has fallen behind: a text may have
// taken it away for good.
const owedGrace = time.Second

// owes reports whether what comes on the terminal is still the last command's.
// The caller holds mu.
func (s *Session) owes() bool { return s.owed != "" && time.Now().Before(s.until) }
