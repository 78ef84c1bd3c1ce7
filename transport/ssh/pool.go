package ssh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"gateway/transport"
)

// spareChannels are the channels of a connection that Terminal and Pipe leave
// for Subsystem and Whole.
const spareChannels = 2

// linger is how long a further connection outlives its last channel.
const linger = 5 * time.Second

// maxDied is on how many connections an opening may find nobody before it fails.
const maxDied = 4

// start launches something on a connection that has a channel for it.
func (t *Transport) start(ctx context.Context, l launch, spare bool, streams func(*program)) (*program, error) {
	died := 0
	for {
		c, err := t.acquire(ctx, spare)
		if err != nil {
			return nil, err
		}
		begun := time.Now()
		p, err := c.start(ctx, l, streams)
		var refusal *gossh.OpenChannelError
		unopened := err != nil && code(err) == codeClosed && died < maxDied // nothing was started
		switch {
		case errors.As(err, &refusal):
			// sshd says "open failed" for what is over MaxSessions, where RFC 4254
			// section 5.1 has "resource shortage": the machine is well, and needs
			// another connection, as often as others get the place there.
			if fresh := c.shut(); fresh {
				return nil, t.limit(refusal)
			}
		case unopened && !c.alive(): // since when, nobody has noticed
			died++
		case unopened && ctx.Err() == nil && c.fellSilent(begun):
			died++
			t.silent(begun)
		default:
			return p, err
		}
	}
}

// silent leaves alone all connections on which nothing has come since then: where one
// got no answer, they would not either.
func (t *Transport) silent(since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.conns {
		c.fellSilent(since)
	}
}

func (t *Transport) limit(cause error) error {
	text := trimmed(cause)
	if refusal, ok := errors.AsType[*gossh.OpenChannelError](cause); ok {
		text = fmt.Sprintf("%s: %s", refusal.Reason, quoted(refusal.Message))
	}
	return t.config.failure(codeLimit, cause, "raise MaxSessions in sshd_config, or set max_sessions to what the server allows",
		"no channel for another program: %s", strings.TrimPrefix(text, t.config.where()+": "))
}

// acquire returns a connection on which a channel is set aside for the caller.
func (t *Transport) acquire(ctx context.Context, spare bool) (*conn, error) {
	limit := t.config.MaxSessions
	if !spare {
		limit = max(1, limit-spareChannels)
	}
	for {
		if ctx.Err() != nil {
			return nil, t.config.unconnected(ctx)
		}
		c, full, err := t.pick(limit, transport.Group(ctx))
		if c != nil || err != nil {
			return c, err
		}
		if err := t.await(ctx); err != nil {
			if ctx.Err() == nil && transport.Group(ctx) == "" && t.shares() {
				continue
			}
			if full && code(err) != codeLimit && t.config.given(ctx, "opening") == nil {
				return nil, t.limit(err)
			}
			return nil, err
		}
	}
}

// shareFor is how long no further connection is tried for what is in no group, once there
// was none to be had.
const shareFor = time.Minute

// shares has what is in no group share connections for a while. It reports whether that
// is new, and there is one where it matters.
func (t *Transport) shares() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	already := time.Now().Before(t.shared)
	t.shared = time.Now().Add(shareFor)
	return !already && slices.ContainsFunc(t.conns, func(c *conn) bool { return c.apart && c.alive() })
}

// pick returns a living connection with a free channel, set aside, or nil and
// whether there is one that is full. Where others of the group are comes first.
// A person is not asked once more for what is in no group.
func (t *Transport) pick(limit int, group string) (free *conn, full bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, false, t.config.closed()
	}
	t.conns = slices.DeleteFunc(t.conns, (*conn).spent)
	share := group == "" && (t.asks || time.Now().Before(t.shared))
	for _, c := range t.conns {
		if group != "" && c.has(group) && c.take(limit, group, false) {
			return c, false, nil
		}
	}
	for _, c := range t.conns {
		if c.take(limit, group, share) {
			return c, false, nil
		}
		full = full || c.speaks() && !c.apart
	}
	return nil, full, nil
}

// await returns once there is one more connection. Openings that need one at
// the same time share it, and its failure: a refused password is not shown
// once for each of them.
func (t *Transport) await(ctx context.Context) error {
	t.mu.Lock()
	d := t.dial
	mine := d == nil
	if mine {
		d = &dialling{done: make(chan struct{})}
		t.dial = d
	}
	t.mu.Unlock()
	if mine {
		d.ended(ctx, t.connect(ctx))
		t.mu.Lock()
		t.dial = nil
		t.mu.Unlock()
		close(d.done)
		return d.err
	}
	select {
	case <-d.done:
	case <-ctx.Done():
		return t.config.unconnected(ctx)
	}
	if d.gaveUp {
		return nil // that is no reason for us to
	}
	return d.err
}

// connect dials one more connection.
func (t *Transport) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.ends, cancel)()
	config := t.config
	config.at, config.kind = t.known()
	c, err := dialHop(ctx, config)
	silent := t.memory != nil && t.memory.settle(err == nil && c.apart)
	if t.ends.Err() != nil && err != nil {
		err = t.config.closed()
	}
	if err != nil {
		return err
	}
	t.mu.Lock()
	closed := t.closed
	other := c.key != t.key && slices.ContainsFunc(t.conns, (*conn).alive)
	if !closed && !other {
		c.mu.Lock()
		c.onIdle = func() { t.idle(c) }
		c.mu.Unlock()
		t.conns = append(t.conns, c)
		t.key = c.key
		t.answered = t.answered || c.answered
		t.asks = t.asks || c.answered && (!silent || c.answeredBefore)
	}
	t.mu.Unlock()
	switch {
	case closed:
		c.close()
		return t.config.closed()
	case other:
		c.close()
		return t.config.failure(codeLimit, nil, "name one machine: several answer to this name", "one more connection came to a machine with another host key")
	}
	return nil
}

// known returns where the living connections lead, if that is known here, and the
// type of the host key there. A name may stand for several machines, and a session's
// programs belong on one. A machine has several keys, too, and shows the one that it
// is asked for: were that another one, because known_hosts has got more of them
// meanwhile, it would look like another machine.
func (t *Transport) known() (address, kind string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.conns, (*conn).alive)
	if i < 0 {
		return "", ""
	}
	c := t.conns[i]
	if t.config.Jump == nil && t.config.ProxyCommand == "" {
		address = c.wire.RemoteAddr().String()
	}
	return address, c.kind
}

// idle has a connection that nobody uses closed after a while, if there is
// another one.
func (t *Transport) idle(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.conns) > 1 {
		time.AfterFunc(linger, func() { t.reap(c) })
	}
}

// reap closes a connection if still nobody uses it and there is another one.
func (t *Transport) reap(c *conn) {
	t.mu.Lock()
	i := slices.Index(t.conns, c)
	idle := false
	if i >= 0 && len(t.conns) > 1 {
		c.mu.Lock()
		if idle = c.isIdleLocked(); idle {
			c.closing = true // take refuses it
		}
		c.mu.Unlock()
	}
	if idle {
		t.conns = slices.Delete(t.conns, i, i+1)
		t.reaping.Add(1)
	}
	t.mu.Unlock()
	if idle {
		c.close()
		t.reaping.Done()
	}
}
