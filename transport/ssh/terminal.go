package ssh

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	gossh "golang.org/x/crypto/ssh"

	"gateway/transport"
)

// Terminal implements [transport.Transport].
func (t *Transport) Terminal(ctx context.Context, command string, options transport.TerminalOptions) (transport.Terminal, error) {
	return t.terminal(ctx, command, options, false)
}

func (t *Transport) terminal(ctx context.Context, command string, options transport.TerminalOptions, spare bool) (transport.Terminal, error) {
	if err := transport.CheckTexts(command, options.Term); err != nil {
		return nil, err
	}
	l := execute(command)
	l.pty = ptyRequest(options)
	l.wait = options.Interactive
	var out *stream
	p, err := t.start(ctx, l, spare, func(p *program) {
		// Where the terminal is refused, what the program writes to its standard
		// error comes as extended data. Left unread, it would use the window up.
		out = p.read(p.over, p.remote, p.remote.Stderr())
	})
	if err != nil {
		return nil, err
	}
	return &terminal{program: p, stream: out}, nil
}

// terminal implements [transport.Terminal].
type terminal struct {
	*program
	stream *stream
}

func (t *terminal) Read(b []byte) (int, error) { return t.stream.Read(b) }

// Deliver implements [transport.Deliverer].
func (t *terminal) Deliver(to func([]byte), end func(error)) { t.stream.Deliver(to, end) }

// Resize implements [transport.Terminal].
func (t *terminal) Resize(size transport.Size) error {
	size = size.OrDefault()
	return t.ask("window-change", gossh.Marshal(struct{ Cols, Rows, Width, Height uint32 }{
		Cols: uint32(size.Cols), Rows: uint32(size.Rows),
	}))
}

// ptyRequest is the payload of pty-req (RFC 4254 section 6.2).
func ptyRequest(options transport.TerminalOptions) []byte {
	size := options.Size.OrDefault()
	modes := drivenModes
	if options.Interactive {
		modes = interactiveModes
	}
	return gossh.Marshal(struct {
		Term                      string
		Cols, Rows, Width, Height uint32
		Modes                     string
	}{
		Term: cmp.Or(options.Term, "dumb"),
		Cols: uint32(size.Cols), Rows: uint32(size.Rows),
		Modes: encodeModes(modes),
	})
}

// A mode is a terminal mode and its value (RFC 4254 section 8).
type mode struct {
	code  uint8
	value uint32
}

// The modes that x/crypto has no name for.
const (
	modeEnd   = 0
	modeIUTF8 = 42 // RFC 8160
	// disabled switches a control character off.
	disabled = 255
)

// commonModes come first in both lists, the speeds first of all: OpenSSH sends
// them there (ttymodes.c), and servers were only ever tried with that order.
var commonModes = []mode{
	{gossh.TTY_OP_OSPEED, 38400},
	{gossh.TTY_OP_ISPEED, 38400},
	{gossh.VINTR, 3},
	{gossh.VQUIT, 28},
	{gossh.VERASE, 127},
	{gossh.VKILL, 21},
	{gossh.VEOF, 4},
	{gossh.ICRNL, 1},
	{gossh.INLCR, 0},
	{gossh.IGNCR, 0},
	{gossh.ISTRIP, 0},
	{gossh.IXON, 1},
	{modeIUTF8, 1},
	{gossh.ISIG, 1},
	{gossh.ICANON, 1},
	{gossh.IEXTEN, 1},
	{gossh.CS8, 1},
}

// drivenModes are for a terminal that a machine drives: what is typed does not
// come back, a newline stays one, and no character stops the foreground job,
// which would look like its end.
var drivenModes = append(slices.Clip(commonModes),
	mode{gossh.VSUSP, disabled},
	mode{gossh.ECHO, 0}, mode{gossh.ECHOE, 0}, mode{gossh.ECHOK, 0}, mode{gossh.ECHONL, 0},
	mode{gossh.OPOST, 0}, mode{gossh.ONLCR, 0},
)

// interactiveModes are what a person expects of a fresh terminal.
var interactiveModes = append(slices.Clip(commonModes),
	mode{gossh.VSUSP, 26},
	mode{gossh.ECHO, 1}, mode{gossh.ECHOE, 1}, mode{gossh.ECHOK, 1}, mode{gossh.ECHOCTL, 1}, mode{gossh.ECHOKE, 1},
	mode{gossh.OPOST, 1}, mode{gossh.ONLCR, 1},
)

func encodeModes(modes []mode) string {
	var b []byte
	for _, m := range modes {
		b = append(b, m.code)
		b = binary.BigEndian.AppendUint32(b, m.value)
	}
	return string(append(b, modeEnd))
}
