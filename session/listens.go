package session

import (
	"fmt"
	"regexp"
	"time"
)

// What is typed to bring the shell back is the shell's. A command that reads the terminal
// would take it for an answer.

// listens reports whether it is the shell that reads what is typed now, once it was
// interrupted. Where that can't be looked at, it is where its prompt may not come by itself.
func (s *Session) listens(r *run) bool {
	switch {
	case s.tty == "": // no command has what it reads
		return true
	case s.announces(r):
		return false
	case r.keeper == nil || r.keeper.isGone():
		return s.lacksPrompt(r)
	}
	tty := s.tty
	if s.dialect.heedsLate {
		tty = "" // whatever it reads from
	}
	nonce, told := s.expectLate(r.keeper, "I", 1)
	r.keeper.tell(listensLine(nonce, s.pid, tty))
	select {
	case m := <-told:
		return m.payload == metPrompt || m.payload == metHidden && s.lacksPrompt(r)
	case <-r.keeper.ended:
	case <-r.keeper.exited:
	case <-time.After(heedGrace + s.lag(r)):
	}
	return s.lacksPrompt(r)
}

// announces reports whether the prompt says by itself that the shell reads commands again:
// the command has the terminal, so its frame has set the prompt. A shell that reads in
// silence then does so for the command, whose own stdin is the terminal, too.
func (s *Session) announces(r *run) bool {
	return r.command.TTY && s.progress(r).begun && !s.dialect.heedsLate && !changesPrompt(r.command.Text)
}

// lacksPrompt reports whether the command's frame may not have been read yet, or its text
// have set another prompt than the frame.
func (s *Session) lacksPrompt(r *run) bool { return r.isEarly(s) || changesPrompt(r.command.Text) }

// prompts matches what may set another prompt.
var prompts = regexp.MustCompile(`\bPS1\b|PROMPT|precmd|_gw|shrc\b|[./_]profile\b|activate\b|\bconda\b`)

func changesPrompt(text string) bool {
	return mentions(text, prompts, "PS1", "PROMPT", "precmd", "_gw", "shrc", "profile", "activate", "conda")
}

// listensLine returns the control line that answers mark I: whether the shell is at its
// prompt.
func listensLine(nonce string, pid int, tty string) string {
	return answerLine('I', nonce, fmt.Sprintf(`a=; %s && a=2 || [ -e /proc/%d/stat ] || a=3`, atPrompt(pid, tty), pid))
}

// atPrompt is a test of the shell, as far as that can be seen: it does not wait for a program
// (proc_pid_wchan(5)), and has its terminal, if there is one, back from the command.
func atPrompt(pid int, tty string) string {
	test := fmt.Sprintf(`read -r l </proc/%[1]d/stat && set -- ${l##*\) } && [ "$1" = S ] && { w=; read -r w </proc/%[1]d/wchan; case $w in *do_wait*|*sigsuspend*) false;; esac; }`, pid)
	if tty != "" {
		test += fmt.Sprintf(` && [ "$3" = "$6" ] && [ /proc/%d/fd/0 -ef %s ]`, pid, Quote(tty))
	}
	return test
}
