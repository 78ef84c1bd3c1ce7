package ssh

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"gateway/transport"
)

// bastions are the connections of this process that carry others.
var bastions = registry{shares: map[string]*share{}}

// A registry lends connections to machines, and closes each one when nobody
// uses it any more.
type registry struct {
	mu     sync.Mutex // guards shares
	shares map[string]*share
}

// A share is one connection and those who use it.
type share struct {
	ready  chan struct{} // closed once conn or err is set
	conn   *conn
	err    error
	gaveUp bool // err is that the dialler's own time was over
	users  int  // the registry's mu guards it
}

// join returns the connection to a machine, which it dials if there is none.
// leave must be called once.
func (r *registry) join(ctx context.Context, config Config) (c *conn, leave func(), err error) {
	key := config.identity()
	for {
		r.mu.Lock()
		s := r.shares[key]
		mine := s == nil
		if mine {
			s = &share{ready: make(chan struct{})}
			r.shares[key] = s
		}
		s.users++
		r.mu.Unlock()
		if mine {
			s.conn, s.err = dialHop(ctx, config)
			if s.err != nil {
				s.gaveUp = gaveUp(ctx, s.err)
				r.forget(key, s)
			}
			close(s.ready)
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			go func() { <-s.ready; r.leave(key, s) }() // ends with the other one's dial
			return nil, nil, config.unconnected(ctx)
		}
		switch {
		case s.err == nil && s.conn.speaks():
			return s.conn, sync.OnceFunc(func() { r.leave(key, s) }), nil
		case s.err == nil && mine:
			r.leave(key, s)
			return nil, nil, s.conn.closedError()
		case s.err == nil:
			r.forget(key, s) // it died, or fell silent; dial anew
			r.leave(key, s)
		case mine:
			return nil, nil, s.err
		case s.gaveUp && ctx.Err() == nil:
			// that is no reason for us to
		default:
			return nil, nil, s.err
		}
	}
}

// gaveUp reports whether a dial for several failed because ctx ended, which is
// only that of the one who dialled. What was refused is refused for all: it is
// not shown again.
func gaveUp(ctx context.Context, err error) bool {
	return ctx.Err() != nil && !slices.Contains([]string{codeRejected, codeTooMany}, code(err))
}

// forget makes the next join dial.
func (r *registry) forget(key string, s *share) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shares[key] == s {
		delete(r.shares, key)
	}
}

// leave gives up one use, and closes the connection after the last.
func (r *registry) leave(key string, s *share) {
	r.mu.Lock()
	s.users--
	last := s.users == 0
	if last && r.shares[key] == s {
		delete(r.shares, key)
	}
	r.mu.Unlock()
	if last && s.conn != nil {
		s.conn.close()
	}
}

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

// identity is equal for two configurations if a connection made with one of
// them serves the other: same machine, same account, same credentials, same
// way, same host key check, and both or neither have a person to ask: what one
// has typed opens nothing for whoever comes without, and a dial that had nobody
// to ask does not fail for one who is there. Functions are taken to be the same
// for the same name.
func (c *Config) identity() string {
	hash := sha256.New()
	for hop := c; hop != nil; hop = hop.Jump {
		fmt.Fprintf(hash, "%q %q %d %q %q %q %v %q %v %v %d %v\n", hop.Name, hop.Addr, hop.Port, hop.User,
			hop.Certificates, hop.Agent, hop.IdentitiesOnly, hop.ProxyCommand, hop.ConnectTimeout, hop.Keepalive, hop.MaxSessions, hop.Ask != nil)
		for _, id := range hop.Identities {
			fmt.Fprintf(hash, "%q %q %q\n", id.Path, id.PEM, id.Name)
		}
		keys := hop.HostKeys
		fmt.Fprintf(hash, "%q %q %d %q %q %q %q %q %v\n", keys.Name, keys.Addr, keys.Port, keys.Alias, keys.Files, keys.Write, keys.Pins, keys.Revoked, keys.Policy)
	}
	return string(hash.Sum(nil))
}

// tunnel opens a connection from the bastion to a machine (RFC 4254 section
// 7.2, direct-tcpip).
func (c *conn) tunnel(ctx context.Context, target *Config) (net.Conn, error) {
	if !c.speaks() { // whoever has waited for a turn need not find out as well
		return nil, target.tunnelError(ctx, c, c.closedError())
	}
	payload := gossh.Marshal(struct {
		Host       string
		Port       uint32
		OriginHost string
		OriginPort uint32
	}{target.Addr, uint32(target.Port), "127.0.0.1", 0})
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

// LocalAddr implements [net.Conn].
func (t *tunnelConn) LocalAddr() net.Addr { return t.conn.mux.LocalAddr() }

// RemoteAddr implements [net.Conn]: the bastion's, for only that one knows the
// machine's.
func (t *tunnelConn) RemoteAddr() net.Addr { return t.conn.mux.RemoteAddr() }

var errNoDeadline = errors.New("a tunnel has no deadlines")

// SetDeadline implements [net.Conn], and refuses.
func (t *tunnelConn) SetDeadline(time.Time) error { return errNoDeadline }

// SetReadDeadline implements [net.Conn], and refuses.
func (t *tunnelConn) SetReadDeadline(time.Time) error { return errNoDeadline }

// SetWriteDeadline implements [net.Conn], and refuses.
func (t *tunnelConn) SetWriteDeadline(time.Time) error { return errNoDeadline }
