package ssh

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
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
	dialling
	conn  *conn // set before done is closed, unless err is
	users int   // the registry's mu guards it
}

// A dialling is a dial that several wait for.
type dialling struct {
	done   chan struct{} // closed once the rest is set
	err    error
	gaveUp bool // err is that the dialler's own time was over
}

// ended notes how the dial went, whose time is that of ctx. What was refused is
// refused for all: it is not shown again.
func (d *dialling) ended(ctx context.Context, err error) {
	d.err = err
	d.gaveUp = err != nil && ctx.Err() != nil && !slices.Contains([]string{codeRejected, codeTooMany}, code(err))
}

// join returns the connection to a machine, which it dials if there is none.
// leave must be called once.
func (r *registry) join(ctx context.Context, config Config) (c *conn, leave func(), err error) {
	key := config.sharing()
	for {
		r.mu.Lock()
		s := r.shares[key]
		mine := s == nil
		if mine {
			s = &share{dialling: dialling{done: make(chan struct{})}}
			r.shares[key] = s
		}
		s.users++
		r.mu.Unlock()
		if mine {
			var err error
			s.conn, err = dialHop(ctx, config)
			if s.ended(ctx, err); err != nil {
				r.forget(key, s)
			}
			close(s.done)
		}
		select {
		case <-s.done:
		case <-ctx.Done():
			go func() { <-s.done; r.leave(key, s) }() // ends with the other one's dial
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
		case mine || !s.gaveUp || ctx.Err() != nil: // else that is no reason for us to
			return nil, nil, s.err
		}
	}
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

// sharing is equal for two configurations if a connection made with one of
// them serves the other: same machine, same account, same credentials, same
// way, same host key check, and both or neither have a person to ask: what one
// has typed opens nothing for whoever comes without, and a dial that had nobody
// to ask does not fail for one who is there. Functions are taken to be the same
// for the same name.
func (c *Config) sharing() string {
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
