package ssh

import (
	"context"
	"errors"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"gateway/transport"
)

// take counts a channel in advance if fewer than limit are in use, and none of
// others where that matters, unless it is to share.
func (c *conn) take(limit int, group string, share bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.most > 0 {
		limit = min(limit, c.most)
	}
	if c.used >= limit || c.closing || !c.alive() || c.isSilentLocked() || time.Now().Before(c.shutBy) {
		return false
	}
	if c.apart && !share && c.used > c.groups[group] {
		return false
	}
	c.used++
	if group != "" {
		c.groups[group]++
	}
	return true
}

// has reports whether a group has channels on the connection.
func (c *conn) has(group string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.groups[group] > 0
}

// release gives back what take took.
func (c *conn) release(group string) {
	c.mu.Lock()
	c.used--
	if c.groups[group]--; c.groups[group] <= 0 {
		delete(c.groups, group)
	}
	c.shutBy = time.Time{}
	if c.used == 0 {
		c.most = 0 // what was refused may have been for programs that are gone by now
	}
	c.unlock()
}

// isIdleLocked reports whether nobody uses the connection, nor has anything left
// to read from it.
func (c *conn) isIdleLocked() bool { return c.used == 0 && len(c.channels) == 0 }

// unlock unlocks mu for who has given up what was used.
func (c *conn) unlock() {
	onIdle := c.onIdle
	if !c.isIdleLocked() {
		onIdle = nil
	}
	c.mu.Unlock()
	if onIdle != nil {
		onIdle()
	}
}

// refusedFor is how long a connection that refused a channel is left alone
// unless one of its channels ends. sshd counts a session until its program is
// gone, which it does not tell.
const refusedFor = time.Second

// open opens a channel of the connection that take was called for; if that
// fails, release has been called. Requests must be served. The time is that of
// whoever the channel is for.
func (c *conn) open(ctx context.Context, limit time.Duration, kind string, payload []byte) (gossh.Channel, <-chan *gossh.Request, error) {
	group := transport.Group(ctx)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	answers, gone := make(chan answer), make(chan struct{}) // gone is closed when nobody waits for one any more
	if !c.spawn(func() {
		channel, requests, err := c.mux.OpenChannel(kind, payload)
		select {
		case answers <- answer{channel, requests, err}:
		case <-gone:
			if err == nil {
				_ = channel.Close() // an error means that the connection is dead
				gossh.DiscardRequests(requests)
			}
			c.release(group)
		}
	}) {
		c.release(group)
		return nil, nil, c.closedError()
	}
	select {
	case a := <-answers:
		return c.opened(group, a)
	case <-ctx.Done():
	}
	select {
	case a := <-answers: // it was in time after all
		return c.opened(group, a)
	default:
		close(gone)
	}
	if given := c.config.given(ctx, "opening a channel"); given != nil {
		return nil, nil, given
	}
	return nil, nil, c.config.failure(codeClosed, context.DeadlineExceeded, hintSilent,
		"opening a channel was not answered %s", c.config.inTime(ctx))
}

// An answer is that of the peer to an opening.
type answer struct {
	channel  gossh.Channel
	requests <-chan *gossh.Request
	err      error
}

// opened sorts the answer to an opening.
func (c *conn) opened(group string, a answer) (gossh.Channel, <-chan *gossh.Request, error) {
	if a.err == nil {
		c.mu.Lock()
		c.served = true
		c.mu.Unlock()
		return a.channel, a.requests, nil
	}
	c.release(group)
	var refused *gossh.OpenChannelError
	if !errors.As(a.err, &refused) {
		return nil, nil, c.closedError()
	}
	return nil, nil, refused
}

// shut leaves the connection alone for a while, because the peer refused a
// channel, and until one of its channels ends. It reports whether the peer never
// allowed any, and no answer is on its way that may.
func (c *conn) shut() (fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shutBy, c.most = time.Now().Add(refusedFor), c.used
	return !c.served && c.used == 0
}

// fellSilent reports whether the peer has said nothing since then. If so, the
// connection is left alone until it speaks again: the link may be down without anyone
// having been told, and another connection may get through.
func (c *conn) fellSilent(since time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heardSince(since) {
		return false
	}
	c.unheard = c.wire.heard.Load()
	return true
}

// heardSince reports whether the peer has said something since then.
func (c *conn) heardSince(then time.Time) bool { return c.wire.heard.Load() >= then.UnixNano() }

// speaks reports whether the link is up and the peer answers, as far as anyone knows.
func (c *conn) speaks() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.alive() && !c.isSilentLocked()
}

func (c *conn) isSilentLocked() bool { return c.unheard != 0 && c.unheard == c.wire.heard.Load() }
