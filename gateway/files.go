package gateway

import (
	"context"

	"gateway/hosts"
	"gateway/transport"
)

// A Connection is a connection to a host for something else than a session,
// such as files. Close gives it back.
type Connection struct {
	transport.Transport
	Host    hosts.Host
	gateway *Gateway
	warm    *Target // it is somebody else's connection to this target
	lent    bool    // it is a session's, which closes it
}

// Connect returns a warm connection to a host if there is one, else one of its
// own; as USER if that is not empty.
func (g *Gateway) Connect(ctx context.Context, name, user string) (*Connection, error) {
	host, err := g.ResolveAs(ctx, name, user)
	if err != nil {
		return nil, err
	}
	target, err := g.Target(ctx, host)
	if err != nil {
		return nil, err
	}
	c := &Connection{Host: host, gateway: g}
	if t, ok := g.warm(ctx, target); ok {
		c.Transport, c.warm = t, &target
		return c, nil
	}
	c.Transport, err = g.dial(ctx, target)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Files returns the session's own connection for something else beside it, such
// as files. It must not be used once the session is closed.
func (s *Session) Files() *Connection {
	return &Connection{Transport: s.transport, Host: s.host, gateway: s.gateway, lent: true}
}

// Close closes the connection and what was started on it. One of a session's
// stays open.
func (c *Connection) Close() error {
	if c.lent {
		return nil
	}
	c.gateway.release(c.Transport)
	return nil
}

// Subsystem starts a subsystem such as sftp. The error's code is
// file.no_subsystem where there is none. It comes first, and not beside other
// calls: where a warm connection has failed meanwhile, one of its own takes its
// place.
func (c *Connection) Subsystem(ctx context.Context, name string) (*transport.Pipe, error) {
	pipe, err := Subsystem(ctx, c.Transport, name)
	if err == nil || c.warm == nil || !linkFailed(err) || ctx.Err() != nil {
		return pipe, err
	}
	own, dialErr := c.gateway.dial(ctx, *c.warm)
	if dialErr != nil {
		return nil, dialErr
	}
	c.gateway.release(c.Transport)
	c.Transport, c.warm = own, nil
	return Subsystem(ctx, own, name)
}

// Subsystem starts a subsystem on a transport that knows them. The error's code
// is file.no_subsystem where there is none.
func Subsystem(ctx context.Context, t transport.Transport, name string) (*transport.Pipe, error) {
	over, ok := t.(interface {
		Subsystem(context.Context, string) (*transport.Pipe, error)
	})
	if !ok {
		return nil, &transport.Error{Code: "file.no_subsystem", Message: "gateway: the connection knows no subsystems"}
	}
	return over.Subsystem(ctx, name)
}
