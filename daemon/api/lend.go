package api

import (
	"context"
	"errors"
	"io"

	"gateway/gateway"
	"gateway/transport"
)

// LendProtocol is what a request to borrow a connection upgrades to.
//
// Once the daemon has switched, the borrower sends the program's ends of its
// pipes (see package fdpass), then a Borrow. The daemon sends LendEvents,
// the borrower Resizes, each as a line. The connection's end hangs the program
// up, or means to the borrower that the link is lost.
const LendProtocol = "gateway-lend"

// AccountHeader has, in the answer that switches, what [transport.Remote] says
// of the lent connection, escaped as in a URL's path.
const AccountHeader = "Gateway-Account"

// Lend asks to borrow the connection that is open to a target, for one
// program. The answer is 404 when there is none.
type Lend struct {
	Key string `json:"key"` // see [gateway.Target.Key]
	// Interactive: there is a person, who may use what a person has opened.
	Interactive bool `json:"interactive,omitempty"`
}

// Borrow starts a program. Its pipes are stdin, stdout and stderr, or for a
// terminal what is typed and what it shows.
type Borrow struct {
	Command []byte `json:"command_base64"`
	// Subsystem is started in place of a command; empty: none.
	Subsystem string          `json:"subsystem,omitempty"`
	Terminal  *BorrowTerminal `json:"terminal,omitempty"`
	// Group is what it belongs to; see [transport.Together].
	Group string `json:"group,omitempty"`
}

// BorrowTerminal is a [transport.TerminalOptions].
type BorrowTerminal struct {
	Size        Size   `json:"size"`
	Term        string `json:"term,omitempty"`
	Interactive bool   `json:"interactive,omitempty"`
}

// Size is a [transport.Size].
type Size struct {
	Cols int `json:"cols"`
	Rows int `json:"rows"`
}

// Resize tells a program's terminal its new size.
type Resize struct {
	Resize Size `json:"resize"`
}

// The streams of a program, as LendEnd counts them.
const (
	LendIn = iota
	LendOut
	LendErr
)

// LendEvent is one of its fields.
type LendEvent struct {
	// Opened or Failed comes first, and Failed is the last.
	Opened bool       `json:"opened,omitempty"`
	Failed *LendError `json:"failed,omitempty"`
	// End is told before the pipe ends: its end alone may be the daemon's.
	End  *LendEnd  `json:"end,omitempty"`
	Exit *LendExit `json:"exit,omitempty"`
	// Ending: the daemon is about to end, and waits for those who use what it has lent.
	Ending bool `json:"ending,omitempty"`
}

// LendEnd is the end of one stream: of an output without an error, it is the
// end of file.
type LendEnd struct {
	Stream int        `json:"stream"`
	Error  *LendError `json:"error,omitempty"`
}

// LendExit is how the program ended, or why nobody knows.
type LendExit struct {
	Code   int        `json:"code"`
	Signal string     `json:"signal,omitempty"`
	Error  *LendError `json:"error,omitempty"`
}

// LendError is an error that is the same to its reader as to its writer, as far
// as anybody looks: text, code, hint, and which values it is.
type LendError struct {
	gateway.JSONError
	Is []string `json:"is,omitempty"`
}

// lendValues are the error values that a transport's errors may wrap.
var lendValues = map[string]error{
	"unreachable":    transport.ErrUnreachable,
	"auth":           transport.ErrAuth,
	"hostkey":        transport.ErrHostKey,
	"lost":           transport.ErrLost,
	"closed":         transport.ErrClosed,
	"canceled":       context.Canceled,
	"deadline":       context.DeadlineExceeded,
	"closed_pipe":    io.ErrClosedPipe,
	"unexpected_eof": io.ErrUnexpectedEOF,
}

// NewLendError returns err for the way; nil for nil.
func NewLendError(err error) *LendError {
	if err == nil {
		return nil
	}
	e := &LendError{JSONError: *gateway.NewJSONError(err)}
	if _, ok := errors.AsType[*transport.Error](err); !ok {
		e.Code = "" // it has none of its own
	}
	for name, value := range lendValues {
		if errors.Is(err, value) {
			e.Is = append(e.Is, name)
		}
	}
	return e
}

// Err returns the error that went on the way; nil for nil. One with a code is a
// *[transport.Error].
func (e *LendError) Err() error {
	if e == nil {
		return nil
	}
	var values []error
	for _, name := range e.Is {
		if value, ok := lendValues[name]; ok {
			values = append(values, value)
		}
	}
	if e.Code == "" {
		return &lentError{text: e.Message, values: values}
	}
	return &transport.Error{Code: e.Code, Message: e.Message, Hint: e.Hint, Err: errors.Join(values...)}
}

// lentError is an error without a code.
type lentError struct {
	text   string
	values []error
}

func (e *lentError) Error() string   { return e.text }
func (e *lentError) Unwrap() []error { return e.values }
