package gateway

import (
	"context"
	"errors"

	"gateway/hosts"
	"gateway/session"
	"gateway/transport"
)

// openSession opens a session on a warm connection if there is one, else on one
// of its own. A transport is the caller's to release, also beside an error.
func (g *Gateway) openSession(ctx context.Context, host hosts.Host, config session.Config) (*session.Session, transport.Transport, error) {
	target, err := g.Target(ctx, host)
	if err != nil {
		return nil, nil, err
	}
	if t, ok := g.warm(ctx, target); ok {
		s, err := session.Open(ctx, t, config)
		if err == nil || !linkFailed(err) || ctx.Err() != nil {
			return s, t, err
		}
		g.release(t) // nothing has run: a connection of our own may do better
	}
	t, err := g.dial(ctx, target)
	if err != nil {
		return nil, nil, err
	}
	s, err := session.Open(ctx, t, config)
	return s, t, err
}

func (g *Gateway) warm(ctx context.Context, target Target) (transport.Transport, bool) {
	if g.config.Warm == nil || target.Local {
		return nil, false
	}
	t, ok := g.config.Warm(ctx, target)
	if !ok {
		return nil, false
	}
	return g.keep(t), true
}

// linkFailed reports whether an error is about the way to the machine, and not
// about the machine.
func linkFailed(err error) bool {
	return errors.Is(err, transport.ErrUnreachable) || errors.Is(err, transport.ErrLost) || Code(err) == "daemon.unreachable"
}
