package gateway

import (
	"context"
	"path"

	"gateway/transport"
)

// ShellOptions are for [Gateway.Shell].
type ShellOptions struct {
	Size transport.Size
	Term string
	User string
}

// Shell starts the account's login shell on a terminal as a person expects it.
// Closing the terminal closes the connection too.
func (g *Gateway) Shell(ctx context.Context, name string, options ShellOptions) (transport.Terminal, error) {
	host, err := g.ResolveAs(ctx, name, options.User)
	if err != nil {
		return nil, err
	}
	t, err := g.connect(ctx, host)
	if err != nil {
		return nil, err
	}
	terminal, err := t.Terminal(ctx, "", transport.TerminalOptions{Size: options.Size, Term: options.Term, Interactive: true})
	if err != nil {
		g.release(t)
		return nil, err
	}
	return &shell{terminal, func() { g.release(t) }}, nil
}

// shell is a terminal that owns its transport.
type shell struct {
	transport.Terminal
	release func()
}

func (s *shell) Close() error {
	err := s.Terminal.Close()
	s.release()
	return err
}

// ShellName returns what the contract calls a shell: its name without the path.
func ShellName(shell string) string {
	if shell == "" {
		return ""
	}
	return path.Base(shell)
}
