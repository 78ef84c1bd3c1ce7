// Package transport is the contract between a session and a machine: a
// [Transport] starts programs there, on a pseudo-terminal or on plain pipes.
//
// It holds the interfaces, the error values and the [Ending] of a program, and
// imports nothing of ours. Its implementations are transport/local and
// transport/ssh; the suite that both pass is transport/transporttest.
package transport

import (
	"context"
	"io"
	"strings"
	"time"
)

// A Transport starts programs on one machine. All methods may be called
// concurrently. What [CheckTexts] refuses is not sent.
type Transport interface {
	// Terminal starts command on a new pseudo-terminal. The context covers the
	// opening only; the Terminal outlives it.
	//
	// command is one line, read by the account's login shell; the empty string
	// starts that login shell itself, as a login shell.
	//
	// A machine may refuse the terminal (sshd's restrict, PermitTTY no). With
	// TerminalOptions.Interactive that is a session.pty_refused [Error]. Without
	// it the program runs anyway, on plain pipes behind the same interface,
	// because waiting for the answer would cost a round trip: such a program
	// asks test -t 0.
	Terminal(ctx context.Context, command string, options TerminalOptions) (Terminal, error)

	// Pipe starts command on three plain pipes, without a terminal. The context
	// covers the opening only.
	Pipe(ctx context.Context, command string) (*Pipe, error)

	// Close ends every program that the Transport started and gives back what
	// it holds. It may be called more than once.
	Close() error
}

// Remote is a [Transport] whose programs may outlive the link to them.
type Remote interface {
	Transport
	// Account returns what tells the machine and the account on it from all
	// others, whatever the way there. It is empty where no program outlives its
	// link.
	Account() string
}

// A Program is something that a [Transport] started.
type Program interface {
	// Wait returns how the program ended. It blocks until then, may be called
	// from several goroutines and gives all of them the same answer. The error
	// wraps [ErrLost] when the link went away first: nobody knows then how it
	// ended, or whether it did.
	Wait() (Exit, error)

	// Done is closed once Wait does not block any more.
	Done() <-chan struct{}

	// AfterDone has f called in a goroutine of its own once Done is closed. Who would
	// only wait for that saves a goroutine.
	AfterDone(f func())

	// Close hangs up: it unblocks pending reads and writes and ends the program
	// as far as the machine lets it. It may be called more than once, and
	// concurrently with everything else.
	Close() error
}

// A Terminal is one program on one pseudo-terminal.
//
// Read, Write and Resize may be called concurrently with each other and with Close.
// Read returns io.EOF once the program has ended and its output is drained,
// whatever the platform reports underneath. What is not read is not thrown
// away: the program blocks. Where Close has hung it up, the error of Wait wraps
// [ErrClosed]: the status that a shell ends with then says nothing of what it ran.
type Terminal interface {
	io.ReadWriter
	Program
	Resize(Size) error
}

// A Listener is a [Program] that knows when anything has last come over its link, for
// whichever program that was.
type Listener interface{ Heard() time.Time }

// A Pipe is one program on three plain pipes. Each stream belongs to one
// goroutine at a time. Both outputs must be read, or the program blocks; they
// return io.EOF when the last holder of their far end is gone. Closing Stdin
// gives the program an end of file and leaves the rest as it is.
type Pipe struct {
	Stdin  io.WriteCloser
	Stdout io.Reader
	Stderr io.Reader
	Program
}

// A Deliverer is a stream that can also hand out what comes in the goroutine that
// has it first, which saves a waking for each chunk, and a goroutine that would
// only wait. A Terminal may be one, and so may the streams of a Pipe.
type Deliverer interface {
	// Deliver takes the place of Read, also after the first. to is called with what
	// comes, not twice at once, and must not keep the bytes. When Read would return
	// an error, end is called with that, once, and to no more. Either may be called
	// before Deliver returns. No Close waits for a call to return.
	Deliver(to func([]byte), end func(error))
}

// Size is a terminal's size in character cells. The zero value stands for
// 80 columns and 24 rows.
type Size struct{ Cols, Rows int }

// MaxSize is how many columns or rows a terminal can have: ioctl_tty(2) counts
// them in 16 bits.
const MaxSize = 1<<16 - 1

// OrDefault returns the size with 80 × 24 in place of what is not positive.
func (s Size) OrDefault() Size {
	if s.Cols <= 0 {
		s.Cols = 80
	}
	if s.Rows <= 0 {
		s.Rows = 24
	}
	return s
}

// TerminalOptions say what kind of terminal a program gets. The zero value is
// a terminal for a machine to drive: no echo, no output translation, no
// suspend character, TERM=dumb.
type TerminalOptions struct {
	Size Size
	// Term is the value of TERM; empty means dumb.
	Term string
	// Interactive asks for the modes that a person expects: echo, \n shown as
	// \r\n, every control character in force.
	Interactive bool
}

// Exit is how a program ended. The zero value is an exit with status 0.
type Exit struct {
	// Code is the exit status, 0–255, or 128+N for a death by signal number N,
	// 128 if that is not known.
	Code int
	// Signal is the name without SIG ("KILL") if a signal ended the program.
	Signal string
}

// CheckTexts refuses what no program can be given: a text with a NUL byte. sshd ends the
// whole connection over one.
func CheckTexts(texts ...string) error {
	if strings.ContainsRune(strings.Join(texts, ""), 0) {
		return &Error{Code: "usage", Message: "transport: there is a NUL byte in what is to be started, which no program can be given"}
	}
	return nil
}
