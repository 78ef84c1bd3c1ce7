package session

import (
	"errors"
	"fmt"

	"gateway/transport"
)

// What errors of a session wrap, if not an error of the transport. All of them
// are a *transport.Error, with an error code of the contract.
var (
	// ErrBusy: another command is running in the session. Nothing was sent.
	ErrBusy = errors.New("session busy")
	// ErrClosed: the session has ended. Nothing was sent.
	ErrClosed = errors.New("session closed")
	// ErrLost: the link went away while the command ran; its outcome is unknown.
	ErrLost = errors.New("outcome unknown")
	// ErrNeedsInput: the command waited for input that nobody gave, and was
	// interrupted.
	ErrNeedsInput = errors.New("command needs input")
	// ErrInterrupted: [Session.Interrupt] ended the command.
	ErrInterrupted = errors.New("interrupted")
)

// InputFailed is the error code of a command that ended, but did not get all of its
// stdin.
const InputFailed = "input.failed"

// The contract's other codes that this package uses.
const (
	codeUsage         = "usage"
	codeUnsupported   = "shell.unsupported"
	codeNoSync        = "shell.no_sync"
	codePTYRefused    = "session.pty_refused"
	codeBusy          = "session.busy"
	codeClosed        = "session.closed"
	codeNeedsPassword = "sudo.needs_password"
	codeRejected      = "sudo.rejected"
	codeCwd           = "cmd.cwd"
	codeTimeout       = "cmd.timeout"
	codeInterrupted   = "cmd.interrupted"
	codeNeedsInput    = "cmd.needs_input"
	codeLost          = "link.lost"
	codeInternal      = "internal"
)

// Hints that several errors have.
const (
	hintClosed  = "open another session"
	hintNoPlace = "make one of $XDG_RUNTIME_DIR, /dev/shm, /tmp (these two with the sticky bit) or the home writable; mkfifo(1) has to be there, too; a forced command that starts all on a terminal, as script(1) does, leaves none, and one that starts each channel in a container of its own none that both see"
)

// failure makes the error that says what happened to a session or its command.
func failure(code string, cause error, hint, format string, args ...any) *transport.Error {
	return &transport.Error{Code: code, Message: "session: " + fmt.Sprintf(format, args...), Hint: hint, Err: cause}
}
