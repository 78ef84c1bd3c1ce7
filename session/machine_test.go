package session_test

import (
	"context"

	"gateway/transport"
)

// altered is a machine that is not as it should be. What is nil leaves it as it is.
type altered struct {
	transport.Transport
	onTerminal, onPipe func(command string) string                 // what is started there in the place of a command
	terminal           func(transport.Terminal) transport.Terminal // what stands in the place of a terminal
	pipe               func(command string, p *transport.Pipe)     // changes a pipe, which is a command's
}

func (m altered) Terminal(ctx context.Context, command string, options transport.TerminalOptions) (transport.Terminal, error) {
	if m.onTerminal != nil {
		command = m.onTerminal(command)
	}
	t, err := m.Transport.Terminal(ctx, command, options)
	if err == nil && m.terminal != nil {
		t = m.terminal(t)
	}
	return t, err
}

func (m altered) Pipe(ctx context.Context, command string) (*transport.Pipe, error) {
	started := command
	if m.onPipe != nil {
		started = m.onPipe(command)
	}
	p, err := m.Transport.Pipe(ctx, started)
	if err == nil && m.pipe != nil {
		m.pipe(command, p)
	}
	return p, err
}

// instead is what a machine does that starts one thing only.
func instead(command string) func(string) string { return func(string) string { return command } }
