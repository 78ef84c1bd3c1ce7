package ssh

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"gateway/transport"
)

// A conn is one authenticated connection. It ends with close, with the link,
// or when the peer no longer answers; whatever lives on it then ends too.
type conn struct {
	config Config
	key    string // fingerprint of the host key
	kind   string // the key's type
	mux    gossh.Conn
	wire   *wire
	under  func() // gives back what carries the connection: a share in a bastion, a command

	// answered: a person's answer opened it, or a bastion on the way to it.
	answered bool

	// apart: one group at a time. When any program of a connection ends, dropbear
	// 2022.83 ends all channels on it that are open and have not been told what to run
	// (check_close, where all descriptors of such a channel are equally unset), and is
	// itself ended by what they say if they are told in that moment.
	apart bool

	ended chan struct{} // closed once x/crypto is through with it and under has been called

	mu      sync.Mutex     // guards what follows
	cause   error          // why it ended, as far as this side knows
	closing bool           // close was called by its owner
	over    bool           // no goroutine may be started any more
	used    int            // channels that the peer still counts, as far as we know
	served  bool           // a channel was opened
	shutBy  time.Time      // when a refused channel may be tried again
	most    int            // so many were used when one was refused; 0: none was
	unheard int64          // wire.heard when an opening got no answer; 0: all did
	onIdle  func()         // called when isIdleLocked has become true
	groups  map[string]int // how many channels of each are in use; see [transport.Together]

	channels map[*channel]bool // those with a goroutine left

	goroutines sync.WaitGroup
}

// newConn takes over an authenticated connection and starts what looks after
// it.
func newConn(config Config, mux gossh.Conn, channels <-chan gossh.NewChannel, requests <-chan *gossh.Request, w *wire, under func()) *conn {
	c := &conn{
		config: config, mux: mux, wire: w, under: under, ended: make(chan struct{}),
		apart:  bytes.Contains(mux.ServerVersion(), []byte("dropbear")),
		groups: map[string]int{}, channels: map[*channel]bool{},
	}
	go c.watch(channels, requests)
	return c
}

// watch answers what the peer asks for, looks whether it is still there, and
// ends the connection for good once x/crypto is through with it. Output that
// came before is still there to be read. It is one goroutine for all of that,
// for there may be hundreds of connections. To send may block: others do it.
func (c *conn) watch(channels <-chan gossh.NewChannel, requests <-chan *gossh.Request) {
	p := newPulse(c)
	defer p.stop()
	replied := make(chan struct{}, 1)
	reply := func(send func() error) {
		c.spawn(func() {
			_ = send() // an error means that the connection is dead
			replied <- struct{}{}
		})
	}
	replying := false
	for channels != nil || requests != nil {
		asked, opened := requests, channels
		if replying { // whoever asks much and reads nothing waits
			asked, opened = nil, nil
		}
		select {
		case request, ok := <-asked: // hostkeys-00@openssh.com, sshd's keepalive
			if !ok {
				requests = nil
			} else if replying = request.WantReply; replying {
				reply(func() error { return request.Reply(false, nil) })
			}
		case channel, ok := <-opened: // nothing was forwarded, so nothing may come back
			if !ok {
				channels = nil
			} else {
				replying = true
				reply(func() error { return channel.Reject(gossh.Prohibited, "no forwarding") })
			}
		case <-replied:
			replying = false
		case <-p.answered:
			p.pending, p.missed = false, 0
		case <-p.ticks:
			p.beat(c)
		}
	}
	c.fail(c.mux.Wait())
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.under()
	close(c.ended)
}

// spawn runs f in a goroutine that close waits for. All of them end with the
// connection. It returns false if that has ended.
func (c *conn) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	c.goroutines.Go(f)
	return true
}

// fail ends the connection because of err.
func (c *conn) fail(err error) {
	c.mu.Lock()
	if c.cause == nil {
		c.cause = err
	}
	c.mu.Unlock()
	c.wire.Close()
}

// close ends the connection for its owner, and waits until nothing of it is
// left but those who take what a stream delivers: they may never return.
func (c *conn) close() {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.fail(transport.ErrClosed)
	<-c.ended
	c.mu.Lock()
	channels := slices.Collect(maps.Keys(c.channels))
	c.mu.Unlock()
	for _, ch := range channels {
		ch.stop(c.lostError(), "") // its pumps may wait for a reader who never comes
	}
	c.goroutines.Wait()
}

// alive reports whether the link is up, as far as anyone knows.
func (c *conn) alive() bool { return !c.wire.broken.Load() }

// spent reports whether the connection is dead and nobody has anything left to
// read from it.
func (c *conn) spent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.alive() && len(c.channels) == 0
}

// lostError is what readers, writers and Wait get when the link is gone.
func (c *conn) lostError() error {
	return c.gone(codeLost, "what was running there may still run", "link lost: %s", "connection closed by the server")
}

// closedError is for a channel that could not be opened because the
// connection had ended: nothing ran.
func (c *conn) closedError() error {
	return c.gone(codeClosed, "", "the connection ended before a channel was open: %s", "closed by the server")
}

// gone says why the connection ended, in its owner's terms if that was close;
// untold stands for a cause that says nothing.
func (c *conn) gone(code, hint, format, untold string) error {
	c.mu.Lock()
	closing, cause := c.closing, c.cause
	c.mu.Unlock()
	switch {
	case closing:
		return c.config.closed()
	case cause != nil && !hangup(cause):
		untold = cut(cause.Error())
	}
	return c.config.failure(code, cause, hint, format, untold)
}

// take counts a channel in advance if fewer than limit are in use, and none of
// others where that matters.
func (c *conn) take(limit int, group string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.most > 0 {
		limit = min(limit, c.most)
	}
	if c.used >= limit || c.closing || !c.alive() || c.isSilentLocked() || time.Now().Before(c.shutBy) {
		return false
	}
	if c.apart && c.used > c.groups[group] {
		return false
	}
	c.used++
	c.groups[group]++
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
	type opened struct {
		channel  gossh.Channel
		requests <-chan *gossh.Request
		err      error
	}
	result := make(chan opened, 1)
	group := transport.Group(ctx)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	// gone lets an answer that comes too late find nobody.
	var mu sync.Mutex
	gone := false
	if !c.spawn(func() {
		channel, requests, err := c.mux.OpenChannel(kind, payload)
		mu.Lock()
		late := gone
		if !late {
			result <- opened{channel, requests, err}
		}
		mu.Unlock()
		if late && err == nil {
			_ = channel.Close() // an error means that the connection is dead
			gossh.DiscardRequests(requests)
		}
		if late {
			c.release(group)
		}
	}) {
		c.release(group)
		return nil, nil, c.closedError()
	}
	select {
	case r := <-result:
		return c.opened(group, r.channel, r.requests, r.err)
	case <-ctx.Done():
	}
	mu.Lock()
	gone = true
	mu.Unlock()
	select {
	case r := <-result: // it was in time after all
		return c.opened(group, r.channel, r.requests, r.err)
	default:
	}
	if given := c.config.given(ctx, "opening a channel"); given != nil {
		return nil, nil, given
	}
	return nil, nil, c.config.failure(codeClosed, context.DeadlineExceeded, hintSilent,
		"opening a channel was not answered %s", c.config.inTime(ctx))
}

// opened sorts the answer to an opening.
func (c *conn) opened(group string, channel gossh.Channel, requests <-chan *gossh.Request, err error) (gossh.Channel, <-chan *gossh.Request, error) {
	if err == nil {
		c.mu.Lock()
		c.served = true
		c.mu.Unlock()
		return channel, requests, nil
	}
	c.release(group)
	var refused *gossh.OpenChannelError
	if !errors.As(err, &refused) {
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
