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
}

// Connect connects to a host, as USER if that is not empty. It makes a
// connection of its own: one that somebody lends starts commands and nothing
// else.
func (g *Gateway) Connect(ctx context.Context, name, user string) (*Connection, error) {
	host, err := g.Resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := As(&host, user); err != nil {
		return nil, err
	}
	t, err := g.connect(ctx, host)
	if err != nil {
		return nil, err
	}
	return &Connection{Transport: t, Host: host, gateway: g}, nil
}

// Close closes the connection and what was started on it.
func (c *Connection) Close() error {
	c.gateway.release(c.Transport)
	return nil
}

// Subsystem starts a subsystem such as sftp. The error's code is
// file.no_subsystem where there is none.
func (c *Connection) Subsystem(ctx context.Context, name string) (*transport.Pipe, error) {
	return subsystem(ctx, c.Transport, name)
}

func subsystem(ctx context.Context, t transport.Transport, name string) (*transport.Pipe, error) {
	over, ok := t.(interface {
		Subsystem(context.Context, string) (*transport.Pipe, error)
	})
	if !ok {
		return nil, &transport.Error{Code: "file.no_subsystem", Message: "gateway: the connection knows no subsystems"}
	}
	return over.Subsystem(ctx, name)
}
