package ssh

import (
	"bytes"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
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

	// answered: a person's answer opened it, or a bastion on the way to it: answeredBefore.
	answered, answeredBefore bool

	// apart: one group at a time, and one program that is in none. When any program of a
	// connection ends, dropbear 2022.83 ends all channels on it that are open and have not
	// been told what to run (check_close, where all descriptors of such a channel are
	// equally unset), and is itself ended by what they say if they are told in that moment.
	apart bool

	// terse: tinysshd answers what is asked on no channel with UNIMPLEMENTED (RFC 4253 section
	// 11.4), which x/crypto does not know, and ends the connection for.
	terse bool

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

	first   sync.Once // a program is started
	nudging atomic.Bool
}

// newConn takes over an authenticated connection and starts what looks after
// it.
func newConn(config Config, mux gossh.Conn, channels <-chan gossh.NewChannel, requests <-chan *gossh.Request, w *wire, under func()) *conn {
	c := &conn{
		config: config, mux: mux, wire: w, under: under, ended: make(chan struct{}),
		apart:  bytes.Contains(mux.ServerVersion(), []byte("dropbear")),
		terse:  bytes.Contains(mux.ServerVersion(), []byte("tinyssh")),
		groups: map[string]int{}, channels: map[*channel]bool{},
	}
	c.nudges()
	go c.watch(channels, requests) // ends with the connection, for which close waits
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
	return c.gone(codeClosed, "look into the server's log; where a ChrootDirectory can be written to by others, every login ends like this", "the connection ended before a channel was open: %s", "closed by the server")
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
	default:
		if p, proxied := c.wire.byteStream.(*proxyConn); proxied { // it may be the server that did
			untold = "the proxy command hung up" + itSaid(p.stderr.String())
		}
	}
	return c.config.failure(code, cause, hint, format, untold)
}
