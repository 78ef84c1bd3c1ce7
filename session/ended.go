package session

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"gateway/transport"
)

// shellEnded makes the result of a command that took its shell along, or whose
// link was lost.
func (s *Session) shellEnded(r *run) (Result, error) {
	s.lost = true
	r.noteLeft()
	exit, lost := s.terminal.Wait()
	if lost == nil || errors.Is(lost, transport.ErrClosed) {
		s.drain(r)
	}
	p := s.progress(r)
	result, _ := s.finish(r, Unknown, ErrLost)
	result.Ended = true
	switch {
	case r.complete(p) && p.verdict() == Exited: // it was over before its shell was
		result.Verdict, result.ExitCode, result.EndedBehind = Exited, p.exitCode(), true
		return result, nil
	case lost != nil && !errors.Is(lost, transport.ErrClosed):
		return result, failure(codeLost, ErrLost, hintLost, "link lost while the command ran: %v", lost)
	case lost != nil, s.cut.Load(): // by this side
		return result, failure(codeLost, ErrLost, hintLost, "hung up while the command ran")
	case s.leftBefore(r, p, exit, result):
		return result, failure(codeLost, ErrLost, "it left on its own or was killed, and may not have begun the command: look before running it again",
			"the shell ended, with status %d, as the command came", exit.Code)
	case exit.Signal != "":
		result.Verdict, result.Signal = Signaled, signalName(exit.Signal)
		if exit.Code > 128 {
			result.ExitCode = exit.Code
		}
	default:
		result.Verdict, result.ExitCode = Exited, exit.Code
	}
	return result, nil
}

const hintLost = "it may have run, or still run: look before running it again"

// leftBefore reports whether the shell may have ended before it read the command:
// in the time in which a shell begins one, without a byte of it, and killed, by a text that
// has no word for that, or saying that it waited for too long (TMOUT), or, as yash in a
// locale without the command's characters, that it can't read it. A command with TTY has a
// mark in front, which did not come then.
func (s *Session) leftBefore(r *run, p progress, exit transport.Exit, result Result) bool {
	if r.command.TTY {
		return !p.begun
	}
	silent, said := result.StdoutBytes+result.StderrBytes == 0, result.Terminal
	if r.shown() == Stdout {
		said = result.Stdout
	}
	killed := exit.Signal != "" || exit.Code == hungUp && !strings.Contains(r.command.Text, strconv.Itoa(hungUp))
	left := silent && killed && !kills.MatchString(r.command.Text) ||
		result.StderrBytes == 0 && (silent || r.shown() == Stdout) && loggedOut.Match(said)
	return left && p.closed == [3]bool{} && !p.begun && r.left.Sub(r.started) < beginning+s.trip
}

// hungUp is the status of mksh, which catches a hang-up and exits.
const hungUp = 128 + int(syscall.SIGHUP)

var (
	kills     = regexp.MustCompile(`\b(exec|kill|killall|pkill|ulimit|eval|source|reboot|poweroff|shutdown|halt)\b|(?m)(^|[\s;&|({])\.\s`)
	loggedOut = regexp.MustCompile(`auto-logout|timed out waiting for input|shell timed? ?out|zsh: timeout|yash: cannot read input`)
)

var signalNames = regexp.MustCompile(`^[A-Z][A-Z0-9]{1,15}`)

// signalName returns the name in what a server says of a signal. One that is not
// of RFC 4254 has its author behind an @. OpenSSH says SIG@openssh.com of each that it has
// no name for (sig2name in session.c).
func signalName(s string) string { return strings.TrimPrefix(signalNames.FindString(s), "SIG") }
