package session

// How a session comes back from a command that was interrupted.

import (
	"fmt"
	"time"
)

// resume makes sure that the shell reads commands again after it was
// interrupted. An interrupt may meet it when the command is over already; zsh,
// mksh and ash then throw the next line away, which says nothing. It reports
// whether there is a shell.
func (s *Session) resume(r *run) bool {
	allWithin(heedGrace, &r.signaling) // a ^C that comes behind it would meet the next command
	s.mu.Lock()
	if p := &r.progress; !p.stdout && p.prompted {
		// The line was left. Shells have their own numbers for that: 258, 386, 2.
		p.promptStatus = "130"
	}
	unread := ""
	if r.pressed.Load() && !r.command.TTY && s.tty != "" {
		unread = unreadKeys
		r.mute = true // it is drained, and what is typed from here may be echoed
	}
	s.mu.Unlock()
	for try := range 3 {
		s.typeKeys(unread + s.dialect.settles + "\n")
		where := s.locate
		if r.keeper.isGone() {
			where = s.prompts
		}
		if r.cutShort.Load() || where(r) { // the next command gets another keeper
			return true
		}
		if closed(s.ended) {
			return false
		}
		s.signalShell(r, "CONT")
		if try > 0 {
			// A late interrupt takes the end of a line away, and mksh goes on with the
			// beginning. One between two steps of a loop leaves zsh reading lines and
			// running none. It is not done at once: yash gives each one a line.
			s.press(r, "\x03", "INT")
			within(promptGrace+s.patience(r), s.ended)
		}
	}
	return false
}

// unreadKeys is a line behind those that were pressed and are no signals in raw mode. They
// are a word of it, which nothing is called, and of which nobody hears.
const unreadKeys = " : 2>/dev/null||:\n"

// whereFrame returns the frame that asks the shell where it is. What is exported is
// kept anew: the interrupt may have met the shell while it did that. Another shell,
// which the command has started and nobody may signal, leaves: as root's it would
// run what comes next.
func (s *Session) whereFrame(r *run, nonce string) frame {
	d := s.dialect
	d.retrace = "" // which is left to the next text
	once := s.once + s.dialect.mend
	if r.command.Cwd != "" {
		once += s.wayBack()
	}
	return frame{
		dialect: d, nonce: nonce, keeper: r.keeper, command: Command{Text: fmt.Sprintf(`{ case $$ in %d);;*)\exit;;esac;} 2>/dev/null`, s.pid)},
		once: once, traced: true, loud: true, limited: s.limited, reopen: s.config.Reopen,
		modes: r.command.TTY || r.pressed.Load() || changesModes(r.command.Text),
	}
}

// prompts reports whether the shell shows its prompt when it is asked to. It is what it can
// say without a keeper.
func (s *Session) prompts(r *run) bool {
	nonce, marks := s.expect("P")
	defer s.outlive(nonce, "P")
	s.typeBehind(r, r.endOfRest()+" PS2=;"+prompt(nonce)+"\n")
	select {
	case <-marks:
		s.mu.Lock()
		r.progress.prompted = true // it stands for the command's own
		s.mu.Unlock()
		return true
	case <-s.ended:
	case <-time.After(time.Second + s.patience(r)):
	}
	return false
}

// locate asks the shell where it is, and reports whether it said so.
func (s *Session) locate(r *run) bool {
	s.mu.Lock()
	// The terminal still echoes, and what it echoes is typed from here; or the shell
	// speaks of what was left unread.
	r.mute = r.mute || (r.command.TTY || r.keyed.Load()) && r.progress.prompted
	if s.traced && s.dialect.traceStays { // what comes from here is the trace of frames
		r.progress.closed = [3]bool{Stdout: true, Stderr: true}
	}
	s.mu.Unlock()
	nonce, marks := s.expect("PE")
	defer s.outlive(nonce, "PE")
	s.typeBehind(r, r.endOfRest()+s.whereFrame(r, nonce).encode())
	timeout := time.After(time.Second + s.patience(r))
	pause := arrival
	chase := time.NewTimer(pause + s.patience(r))
	defer chase.Stop()
	ends, prompted := 0, false
	for ends < 2 || !prompted { // both ends: the streams may be another keeper's next
		select {
		case m := <-marks:
			if m.kind != 'E' {
				s.mu.Lock()
				r.progress.prompted, prompted = true, true // it stands for the command's own
				s.mu.Unlock()
				break
			}
			r.unmarked = false
			if ends++; m.payload != "" {
				s.once, r.located = "", true
				s.mu.Lock()
				_, r.progress.job, r.progress.cwd = parseEnd(m.payload)
				s.mu.Unlock()
			}
		case <-chase.C:
			s.chase(r)
			pause *= 2
			chase.Reset(pause + s.patience(r))
		case <-s.ended:
			return false
		case <-timeout:
			if s.delayed(r) {
				timeout = time.After(time.Second + s.patience(r))
				break
			}
			r.unmarked = ends == 0
			return ends == 2
		}
	}
	return true
}

// delayed reports whether it is the link that keeps an answer of the shell's, where nobody
// hurries: the keeper has not answered at once, either.
func (s *Session) delayed(r *run) bool {
	if r.keeper == nil || r.keeper.isGone() || r.hurries() {
		return false
	}
	answered, asked := make(chan struct{}), time.Now()
	go func() { // ends with the pipe
		defer close(answered)
		s.answers(r.keeper, 1)
	}()
	within(heedGrace, answered)
	if closed(answered) {
		return false
	}
	for !closed(answered) && !r.hurries() && time.Since(asked) < maxLag {
		within(heedGrace, answered)
	}
	return closed(answered) && !r.keeper.isGone()
}

// chase signals what has begun behind the prompt: bash keeps what it has read when an
// interrupt comes before it has looked at it, and an interrupt that is not typed throws
// nothing away. Such a shell shows its prompt, and then runs the command.
func (s *Session) chase(r *run) {
	level, at, passOver := Int, r.started, ""
	switch o := r.ordered.Load(); {
	case r.keeper == nil, o == nil && !r.stopped.Load(): // nor was there a deadline
		return
	case o != nil:
		level, at = o.level, o.at
	}
	if level == Int && s.tty != "" {
		passOver = inFront
	}
	nonce, told := s.expectLate(r.keeper, "I", 1)
	r.looks = append(r.looks, told)
	r.keeper.tell(sweepLine(nonce, level, time.Since(at), s.scope(r), passOver))
}

// giveUp ends a session whose shell can't be brought back.
func (s *Session) giveUp(r *run, verdict Verdict, cause error) (Result, error) {
	s.lost = true
	s.signalShell(r, "KILL")
	within(time.Second+s.patience(r), s.ended)
	over := r.complete(s.progress(r)) // all of it is here, and how it ended is known
	switch {
	case over && !closed(s.ended):
		r.deaf.Store(true)
	case !over && !r.deaf.Load():
		s.drain(r)
	}
	if !over && (r.deaf.Load() || r.keeper == nil || r.keeper.isGone()) && !closed(s.ended) {
		verdict, cause = Unknown, errNothingAnswers // all this may have reached nobody
	}
	s.terminal.Close()
	result, err := s.finish(r, verdict, cause)
	result.Ended = true
	return result, err
}
