package session

import "bytes"

// Write types b to the command that runs: one with TTY, or one that waits for
// input. Anything else would leave it to the shell, as its next command, and is
// refused. What a command with TTY leaves unread is thrown away, unless its line was
// left early, as by an interrupt; of any other the shell takes it.
func (s *Session) Write(b []byte) (int, error) { return s.write(b, false) }

// WriteSecret is Write for what nobody is to see: in what comes from the command
// from now on, on the terminal or elsewhere, stars stand in its place. A secret
// of less than four bytes is not looked for.
func (s *Session) WriteSecret(b []byte) (int, error) { return s.write(b, true) }

func (s *Session) write(b []byte, secret bool) (int, error) {
	r := s.reader()
	if r == nil {
		return 0, nobodyReads()
	}
	if secret {
		r.veil.hide(string(b))
	}
	if r.command.TTY && bytes.IndexByte(b, 3) >= 0 && r.isEarly(s) {
		r.pursue(typedLevel)
	}
	r.typing.Lock()
	defer r.typing.Unlock()
	seen := r.counts() // before the write: what comes next may be the next prompt
	defer func() {
		select {
		case r.typed <- seen:
		default: // there is news of it already
		}
	}()
	if !r.command.TTY && !s.stillReads(r, false) {
		return 0, nobodyReads()
	}
	r.keyed.Store(true)
	if s.reader() != r { // it has ended behind another writer
		return 0, nobodyReads()
	}
	r.goesOn()
	return s.terminal.Write(b)
}

func nobodyReads() error {
	return failure(codeUsage, nil, "type to a command with a terminal, or to one that waits for input", "no command reads what is typed")
}

// reader returns the command that reads what is typed, if there is one.
func (s *Session) reader() *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.run; r != nil && (r.command.TTY || r.asking) && !r.progress.stdout && !r.progress.prompted {
		return r
	}
	return nil
}
