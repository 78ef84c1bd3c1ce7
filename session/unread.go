package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"gateway/transport"
)

// What a command leaves unread of what was typed to it would be the shell's next
// commands.
//
// The frame of one with TTY ends with mark P, written by itself, and reads on until
// a line comes that the engine types once it lets nobody type to the command any
// more. Nobody waits for that: the next frame is typed behind it. What the shell
// says when it reads commands again comes before a prompt with a nonce of its own,
// and is nobody's.
//
// Of what any other command was answered, the shell gets the rest. The engine looks
// that it has done with it, and lets nobody see what it said.

// discard returns the end of the frame of a command with TTY, on a line of its own.
// It has no word that an alias could take over, no loop, and needs no PATH. A ^D
// that was typed once too often ends one grep, and so does the end of the terminal.
// Where mark P can't be written nothing is read: the prompt is that mark then.
func (f frame) discard() string {
	if f.rest == "" {
		return ""
	}
	read := "grep -q " + f.rest
	return "\n{ { " + f.dialect.shownMark('P', f.nonce, `"0:#"`) + "&&_gwn=" + f.rest +
		"&&{ " + strings.Repeat(`\command -p `+read+"||", 3) + `\command ` + read + ";};} </dev/tty >|/dev/tty;} 2>/dev/null||:;"
}

// endOfRest is the line that ends the reading, with a newline for what was left
// without one. To a shell that does not read there, for its line was left, it is a
// command that does nothing.
func (r *run) endOfRest() string {
	if r.rest == "" {
		return ""
	}
	return "\n : " + r.rest + " :\n"
}

// release ends the reading. Until the shell reads commands again, what comes on the
// terminal is nobody's.
func (s *Session) release(r *run) {
	if r.rest == "" || s.lost {
		return
	}
	s.mu.Lock()
	s.owe(r.rest)
	s.mu.Unlock()
	s.typeBehind(r, r.endOfRest())
}

// typeBehind types what has to stand behind everything that Session.Write was given
// for a command. Whoever types for the next one waits for it; see [Session.typed].
func (s *Session) typeBehind(r *run, keys string) {
	before, typed := s.typed, make(chan struct{})
	s.typed = typed
	go func() { // ends with the terminal
		defer close(typed)
		if before != nil {
			<-before
		}
		r.typing.Lock()
		defer r.typing.Unlock()
		_, _ = io.WriteString(s.terminal, keys)
	}()
	within(typeGrace, typed)
}

// awaitTyped waits until that is typed. A terminal that takes nothing for so long
// has nobody who reads it.
func (s *Session) awaitTyped(ctx context.Context) error {
	if s.typed == nil {
		return nil
	}
	select {
	case <-s.typed:
		s.typed = nil
		return nil
	case <-ctx.Done():
		return fmt.Errorf("session: %w", transport.Cause(ctx))
	case <-s.ended:
		return hasEnded()
	case <-time.After(drainGrace):
		return s.terminalGone(errors.New("nobody reads it"))
	}
}
