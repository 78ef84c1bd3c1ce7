package session

import (
	"fmt"
	"io"
)

// What a command on the terminal has left unread would be the shell's next
// commands. So its frame ends with mark P, written by itself, and then reads until
// the line comes that the engine types once it lets nobody type to the command any
// more. Nobody waits for that.

// discard returns the end of such a frame, on a line of its own. A ^D that was
// typed once too often fails the reading, and so does the end of the terminal, for
// good. A shell that traces would show every line.
func (f frame) discard() string {
	if !f.command.TTY || f.traced {
		return ""
	}
	return "\n{ " + f.dialect.mark('P', f.nonce, `"0:#"`) + "&&_gwn=;for _gwa in 1 2 3 4;do " + fmt.Sprintf(f.dialect.until, f.nonce) + "done;} </dev/tty >|/dev/tty||:;unset _gw;"
}

// untilRead is [dialect.until] with a shell's own read.
func untilRead(read string) string {
	return "while " + read + " -r _gw;do case $_gw in *%s*)break 2;;esac;done;"
}

// release ends the reading of [frame.discard]. A shell that does not read there,
// for its line was left, takes what is typed for a command that does nothing. The
// newline in front ends what was left without one.
func (s *Session) release(r *run) {
	if !r.command.TTY || r.released || s.lost {
		return
	}
	r.released = true
	typed := make(chan struct{})
	go func() { // ends with the terminal
		defer close(typed)
		r.typing.Lock() // behind what Session.Write still has to type
		defer r.typing.Unlock()
		_, _ = io.WriteString(s.terminal, "\n : "+r.nonce+" :\n")
	}()
	within(typeGrace, typed)
}
