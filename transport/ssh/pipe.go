package ssh

import (
	"context"

	"gateway/transport"
)

// Pipe implements [transport.Transport]. Its Close sends the program a hang-up
// signal, which sshd before 10.0 does not deliver to root's.
func (t *Transport) Pipe(ctx context.Context, command string) (*transport.Pipe, error) {
	return t.pipe(ctx, execute(command), false)
}

// Whole returns the transport for who may also take the two channels of a
// connection that Terminal and Pipe leave free: it finds a place when all of
// theirs are taken. It is the same transport otherwise, and closed with it.
func (t *Transport) Whole() transport.Transport { return whole{t} }

type whole struct{ *Transport }

// Terminal implements [transport.Transport].
func (t whole) Terminal(ctx context.Context, command string, options transport.TerminalOptions) (transport.Terminal, error) {
	return t.terminal(ctx, command, options, true)
}

// Pipe implements [transport.Transport].
func (t whole) Pipe(ctx context.Context, command string) (*transport.Pipe, error) {
	return t.pipe(ctx, execute(command), true)
}

// Subsystem starts a subsystem such as sftp. It may use the channels that
// Whole does. Unlike Pipe it waits for the machine's answer; a machine
// without the subsystem gives a file.no_subsystem [transport.Error].
func (t *Transport) Subsystem(ctx context.Context, name string) (*transport.Pipe, error) {
	return t.pipe(ctx, launch{request: "subsystem", text: name, wait: true}, true)
}

func (t *Transport) pipe(ctx context.Context, l launch, spare bool) (*transport.Pipe, error) {
	if err := transport.CheckTexts(l.text); err != nil {
		return nil, err
	}
	var out, err *stream
	p, failed := t.start(ctx, l, spare, func(p *program) {
		out = p.read(p.ended, p.remote)
		err = p.read(p.ended, p.remote.Stderr())
	})
	if failed != nil {
		return nil, failed
	}
	return &transport.Pipe{Stdin: stdin{p}, Stdout: out, Stderr: err, Program: p}, nil
}

// stdin is the program's standard input; its Close leaves the rest open.
type stdin struct{ *program }

// Close implements [io.Closer].
func (s stdin) Close() error { return s.CloseWrite() }
