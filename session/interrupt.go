package session

import "time"

// Level says how firmly a command is asked to end.
type Level string

const (
	// Int is what ^C does: the foreground program is interrupted, and a loop of
	// the shell's own is left.
	Int Level = "int"
	// Term is a signal to all that the command has started. The shell is spared.
	Term Level = "term"
	// Kill is one, too. If that does not end the command, a loop of the shell's own
	// is left.
	Kill Level = "kill"
)

// An order is an interrupt, and when it came.
type order struct {
	level Level
	at    time.Time
	typed bool // the terminal sends it to all at once, and not one after the other
}

// Interrupt asks the command that runs to end, once. It does not wait: Run
// returns when the command has ended, with verdict interrupted and the status
// that it ended with. One that goes on regardless goes on; ask again, with
// another level. A ^C behind which it is typed to has not ended it: its end is its own
// then. What it misses because the command, or a program of it, is only
// about to begin is made up for.
//
// The error is a *[transport.Error] with the code usage where no command runs.
func (s *Session) Interrupt(level Level) error {
	if level != Int && level != Term && level != Kill {
		return failure(codeUsage, nil, "", "level %q: use int, term or kill", level)
	}
	s.mu.Lock()
	r := s.run
	over := r != nil && (r.progress.prompted || r.complete(r.progress))
	if r != nil && !over {
		o := &order{level: level, at: time.Now(), typed: level == Int && s.types(r, "INT")}
		if !o.typed || r.ordered.Load() == nil { // one that is typed makes up for no other
			r.ordered.Store(o) // now, or Run could be through before it looks
		}
		r.told.Store(true)
		r.signaling.Add(1)
		defer r.signaling.Done()
	}
	s.mu.Unlock()
	if over {
		return nil // Run is about to return, and a ^C would meet the shell
	}
	if r == nil {
		return failure(codeUsage, nil, "", "no command runs: nothing to interrupt")
	}
	switch level {
	case Int:
		s.press(r, "\x03", "INT")
	case Term:
		s.signal(r, "TERM")
	case Kill:
		s.signal(r, "KILL")
		s.signalShell(r, "CONT")
	}
	r.pursue(level)
	return nil
}

// goesOn forgets a ^C that the command has lived through, as a REPL does whose
// evaluation it has ended. A signal that it was sent besides is not forgotten: it has to
// be looked for whom that has missed.
func (r *run) goesOn() {
	if o := r.ordered.Load(); o != nil && o.typed {
		r.ordered.CompareAndSwap(o, nil)
	}
}

// over makes the result of a command that has ended while its shell lives.
func (s *Session) over(r *run) (Result, error) {
	order := r.ordered.Load()
	if order == nil {
		left := r.keyed.Load() && r.rest == "" || takesInput(r.command.Text) // see discard
		if left && s.progress(r).stdout && !s.resume(r) {
			return s.giveUp(r, "", nil)
		}
		return s.finish(r, "", nil)
	}
	s.drain(r)
	if !order.typed {
		s.sweep(r, order.level, order.at)
	}
	cause := failure(codeInterrupted, ErrInterrupted, "", "command interrupted")
	if !s.resume(r) {
		return s.giveUp(r, Interrupted, cause)
	}
	return s.finish(r, Interrupted, cause)
}
