package ssh

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"gateway/transport"
)

// joinJump returns the connection to the machine before this one; leave as for
// join. The error is a *[JumpError].
func (c *Config) joinJump(ctx context.Context) (bastion *conn, leave func(), err error) {
	if bastion, leave, err = bastions.join(ctx, *c.Jump); err != nil {
		return nil, nil, &JumpError{Host: c.Name, Jump: c.Jump.Name, Err: err}
	}
	return bastion, leave, nil
}

// A JumpError is that a machine on the way to another one was not reached. Whoever
// asked for the other one need not know of it. It wraps the failure, which may be
// a JumpError, too.
type JumpError struct {
	Host, Jump string
	Err        error
}

// Error implements error. What was wrong with the jump names it, and needs no second
// name of this package.
func (e *JumpError) Error() string {
	return "ssh: jump of " + e.Host + ": " + strings.TrimPrefix(e.Err.Error(), "ssh: ")
}

// Unwrap returns what was wrong with the jump.
func (e *JumpError) Unwrap() error { return e.Err }

// FailedJump returns the machine on the way that an error is about; empty if it
// is about the one that was asked for.
func FailedJump(err error) (name string) {
	for jump := (*JumpError)(nil); errors.As(err, &jump); err = jump.Err {
		name = jump.Jump
	}
	return name
}

// key is the machine as an address that is unique in this process: behind
// which bastion it is, too.
func (c *Config) key() string {
	key := c.hostPort()
	if c.ProxyCommand != "" {
		key += "\x00" + c.ProxyCommand
	}
	if c.Jump != nil {
		key += "\x00" + c.Jump.key()
	}
	return key
}

// tunnel opens a connection from the bastion to a machine (RFC 4254 section
// 7.2, direct-tcpip).
func (c *conn) tunnel(ctx context.Context, target *Config) (byteStream, error) {
	if !c.speaks() { // whoever has waited for a turn need not find out as well
		return nil, target.tunnelError(ctx, c, c.closedError())
	}
	payload := gossh.Marshal(struct {
		Host       string
		Port       uint32
		OriginHost string
		OriginPort uint32
	}{target.Addr, uint32(target.Port), "127.0.0.1", 0})
	c.wire.relays.Store(true)
	c.mu.Lock()
	c.used++ // sshd limits sessions, not tunnels
	c.mu.Unlock()
	begun := time.Now()
	// A bastion that waits for the machine has nothing to say unless it is asked.
	probe := time.AfterFunc(target.ConnectTimeout/2, func() { c.spawn(func() { _ = c.askForLife() }) })
	defer probe.Stop()
	remote, requests, err := c.open(ctx, target.ConnectTimeout, "direct-tcpip", payload)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			c.fellSilent(begun)
		}
		return nil, target.tunnelError(ctx, c, err)
	}
	ch := newChannel(c, remote, "")
	ch.begin(nil)
	t := &tunnelConn{channel: ch, in: ch.read(ch.ended, remote, remote.Stderr())}
	if !c.spawn(func() { ch.serve(requests, nil) }) {
		ch.leave() // in its place
		ch.Close()
		return nil, target.tunnelError(ctx, c, c.closedError())
	}
	return t, nil
}

// tunnelError says why a bastion opened no connection to this machine.
func (c *Config) tunnelError(ctx context.Context, bastion *conn, err error) error {
	if given := c.given(ctx, "connecting"); given != nil {
		return given
	}
	name := bastion.config.Name
	var refused *gossh.OpenChannelError
	switch {
	case errors.As(err, &refused) && refused.Reason == gossh.Prohibited:
		return c.failure(codeProxy, err, "set AllowTcpForwarding yes, or PermitOpen, in the bastion's sshd_config; restrict in authorized_keys forbids it too",
			"%s forbids connections to other machines", name)
	case errors.As(err, &refused) && refused.Reason == gossh.UnknownChannelType:
		return c.failure(codeProxy, err, "name another bastion", "%s makes no connections to other machines", name)
	case errors.As(err, &refused):
		return c.failure(codeProxy, err, "check addr and port as seen from "+name, "%s could not connect: %s", name, quoted(refused.Message))
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded):
		return c.failure(codeTimeout, context.DeadlineExceeded, "check addr and port as seen from "+name,
			"no connection from %s %s", name, c.inTime(ctx))
	}
	return c.failure(codeProxy, err, "", "the connection to %s ended", name)
}

// A tunnelConn is a connection that runs over another one.
type tunnelConn struct {
	*channel
	in *stream
}

func (t *tunnelConn) Read(p []byte) (int, error) {
	n, err := t.in.Read(p)
	if err != nil && err != io.EOF && !errors.Is(err, transport.ErrClosed) {
		err = errors.New(strings.TrimPrefix(err.Error(), "ssh: ")) // the bastion's state is not this machine's
	}
	return n, err
}

// LocalAddr implements [byteStream].
func (t *tunnelConn) LocalAddr() net.Addr { return t.conn.mux.LocalAddr() }

// RemoteAddr implements [byteStream]: the bastion's, for only that one knows the
// machine's.
func (t *tunnelConn) RemoteAddr() net.Addr { return t.conn.mux.RemoteAddr() }
