package ssh

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"gateway/transport"
)

// clientVersion is what this client calls itself (RFC 4253 section 4.2).
const clientVersion = "SSH-2.0-gateway"

// How long to wait before a machine that turned the connection away is tried
// again: doubled each time, with the clock of the hop as the limit.
const (
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 2 * time.Second
	// maxSilent is how often a connection that ended before the banner without a
	// word is tried again, for three seconds: dropbear drops so what is over five
	// logins at once, old versions of sshd what is over MaxStartups, and both have room
	// again when a login is over. Much that is not sshd ends like this, too.
	maxSilent = 5
)

// dialHop connects to one machine, through its bastions if it has any, whose
// time does not count for this one.
func dialHop(ctx context.Context, config Config) (*conn, error) {
	if config.Jump == nil {
		return dialThrough(ctx, config, nil, func() {})
	}
	for {
		begun := time.Now()
		bastion, leave, err := config.joinJump(ctx)
		if err != nil {
			return nil, err
		}
		c, err := dialThrough(ctx, config, bastion, leave)
		if err == nil {
			return c, nil
		}
		leave()
		// A connection to the bastion may be gone without anyone having noticed;
		// another one, if this one was there before, may get through.
		if ctx.Err() != nil || bastion.speaks() || bastion.heardSince(begun) {
			return nil, err
		}
	}
}

// dialThrough connects to one machine over bastion, or directly if it is nil. leave is
// called when the connection has ended.
func dialThrough(ctx context.Context, config Config, bastion *conn, leave func()) (*conn, error) {
	ctx, clock := newClock(ctx, config.ConnectTimeout)
	defer clock.stop()
	free, err := config.takePlace(ctx, clock)
	if err != nil {
		return nil, config.crowded(ctx)
	}
	defer free()
	pins := &pinSearch{keys: config.HostKeys, first: config.kind}
	backoff := firstBackoff
	var away error // why the server turned the try before away
	for try := 0; ; try++ {
		raw, err := config.carrier(ctx, clock, bastion)
		if err != nil {
			return nil, whyLate(err, away)
		}
		h := &handshake{config: &config, clock: clock, wire: newWire(raw), pins: pins}
		c, err := h.run(ctx, func() {
			bury(raw)
			leave()
		})
		if err == nil {
			c.answeredBefore = bastion != nil && bastion.answered
			c.answered = h.auth.keys.answered || c.answeredBefore
			return c, nil
		}
		if pins.goOn(err) {
			continue
		}
		err = pins.outcome(err)
		if !h.wire.banner.Load() {
			err = whyLate(err, away)
		}
		if !h.again(err, try) || clock.timeLeft() <= backoff {
			return nil, h.explained(err)
		}
		away = err
		select {
		case <-time.After(backoff):
		case <-ctx.Done():
			return nil, h.failure(ctx, err)
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// whyLate is the error of a try. A server that had turned the one before away is the reason
// for there not having been more time for it.
func whyLate(err, away error) error {
	if away != nil && errors.Is(err, context.DeadlineExceeded) {
		return away
	}
	return err
}

// takePlace waits for a place among the handshakes with the machine, and through its
// bastion. free gives it back.
func (c *Config) takePlace(ctx context.Context, clock *clock) (free func(), err error) {
	through := func() {}
	if c.Jump != nil {
		resume := clock.pause() // waiting for others is no time that this machine takes
		through, err = handshakes.enter(ctx, "through "+c.Jump.key())
		resume()
		if err != nil {
			return nil, err
		}
	}
	own, err := handshakes.enter(ctx, c.key())
	if err != nil {
		through()
		return nil, err
	}
	return func() { own(); through() }, nil
}

// crowded is why there was no place for one more handshake.
func (c *Config) crowded(ctx context.Context) error {
	if given := c.given(ctx, "connecting"); given != nil {
		return given
	}
	return c.failure(codeThrottled, context.DeadlineExceeded, "too many connections to one machine at once: lower --forks",
		"no place among its %d handshakes became free %s", maxHandshakes, c.inTime(ctx))
}

// carrier opens the byte stream for the connection.
func (c *Config) carrier(ctx context.Context, clock *clock, bastion *conn) (byteStream, error) {
	switch {
	case c.ProxyCommand != "":
		return startProxy(c)
	case bastion != nil:
		raw, err := bastion.tunnel(ctx, c)
		if err == nil {
			c.trace("tcp", "%s from %s", c.hostPort(), c.Jump.Name)
		}
		return raw, err
	}
	// The context has no deadline, and without one the first of several addresses
	// would get all the time.
	raw, err := (&net.Dialer{Timeout: clock.timeLeft()}).DialContext(ctx, "tcp", cmp.Or(c.at, c.hostPort()))
	if err != nil {
		return nil, c.dialError(ctx, err)
	}
	c.trace("tcp", "%s", raw.RemoteAddr())
	return raw, nil
}

// explained adds what a proxy command wrote to its standard error. Where the
// connection ended before the banner, the reason stands there; anywhere else it
// may be a warning that has nothing to do with err.
func (h *handshake) explained(err error) error {
	proxy, ok := h.wire.byteStream.(*proxyConn)
	var typed *transport.Error
	if !ok || !errors.As(err, &typed) || !strings.HasPrefix(typed.Code, "ssh.") {
		return err
	}
	said := proxy.said()
	if typed.Code == codeClosed && !h.wire.banner.Load() {
		return h.config.failure(codeProxy, err, "run the proxy command by hand", "proxy command: %s", cmp.Or(said, "it ended without a word"))
	}
	more := *typed
	if typed.Code == codeHandshake && !h.wire.banner.Load() {
		more.Hint = "the proxy command may not have reached the machine: run it by hand"
	}
	if said != "" {
		more.Message += "; the proxy command said " + quoted(said)
	}
	return &more
}

// A handshake turns a byte stream into an authenticated connection.
type handshake struct {
	config *Config
	clock  *clock
	wire   *wire
	auth   *authenticator
	pins   *pinSearch

	trusted atomic.Bool // the host key was accepted
	key     string      // its fingerprint
	kind    string      // its type
}

func (h *handshake) phase() *phase {
	switch {
	case h.trusted.Load():
		return phaseAuth
	case h.wire.banner.Load():
		return phaseKex
	}
	return phaseBanner
}

// run returns the connection, which calls under when it has ended, or closes
// the stream.
func (h *handshake) run(ctx context.Context, under func()) (*conn, error) {
	c := h.config
	// A deadline on the stream would cover the time that a person takes to
	// answer, and a tunnel has none.
	stop := context.AfterFunc(ctx, func() { h.wire.Close() })
	h.auth = newAuthenticator(ctx, c, h.clock, h.wire)
	defer h.auth.close()
	mux, channels, requests, err := gossh.NewClientConn(h.wire, c.hostPort(), h.client(ctx))
	if !stop() && err == nil {
		err = ctx.Err()
		mux.Close()
		go gossh.DiscardRequests(requests) // both end at once: the stream is closed
		go discardChannels(channels)
	}
	if err != nil {
		h.wire.Close()
		err = h.failure(ctx, err)
		bury(h.wire.byteStream)
		return nil, err
	}
	h.auth.settle()
	c.trace("banner", "%s", mux.ServerVersion())
	if meta, ok := mux.(gossh.AlgorithmsConnMetadata); ok {
		negotiated := meta.Algorithms()
		c.trace("kex", "%s, %s", negotiated.KeyExchange, negotiated.Read.Cipher)
		h.wire.join(negotiated.Write.Cipher)
	}
	established := newConn(*c, mux, channels, requests, h.wire, under)
	established.key, established.kind = h.key, h.kind
	return established, nil
}

func discardChannels(channels <-chan gossh.NewChannel) {
	for channel := range channels {
		_ = channel.Reject(gossh.Prohibited, "closing") // the stream is closed
	}
}

// client is the configuration for x/crypto.
func (h *handshake) client(ctx context.Context) *gossh.ClientConfig {
	c := h.config
	// The defaults of x/crypto hold sha1 for the sake of old servers; this list
	// does not. It has aes128-gcm first, which moves 628 MB/s where
	// chacha20-poly1305 moves 320.
	safe := gossh.SupportedAlgorithms()
	algorithms, check := c.HostKeys.begin(ctx)
	return &gossh.ClientConfig{
		Config:            gossh.Config{KeyExchanges: safe.KeyExchanges, Ciphers: safe.Ciphers, MACs: safe.MACs},
		User:              c.User,
		ClientVersion:     clientVersion,
		HostKeyAlgorithms: h.pins.order(algorithms),
		HostKeyCallback:   h.checker(check),
		AuthCallback:      h.auth.next,
		BannerCallback:    h.auth.hear,
	}
}

// checker checks the host key once. x/crypto calls it again for every renewal
// of the keys, in the middle of a session, where nobody can be asked: then the
// key has to be the same.
func (h *handshake) checker(check gossh.HostKeyCallback) gossh.HostKeyCallback {
	var accepted []byte
	return func(addr string, remote net.Addr, key gossh.PublicKey) error {
		if accepted != nil {
			if !bytes.Equal(accepted, key.Marshal()) {
				return errors.New("another host key in the middle of the connection")
			}
			return nil
		}
		defer h.clock.pause()() // it may ask a person
		if err := check(addr, remote, key); err != nil {
			return err
		}
		accepted = key.Marshal()
		h.key, h.kind = fingerprint(key), plainKey(key).Type()
		h.config.trace("hostkey", "%s %s", key.Type(), gossh.FingerprintSHA256(key))
		h.trusted.Store(true)
		return nil
	}
}

// again reports whether err is that the server turned the connection away
// before its banner, so that nothing was shown to it.
func (h *handshake) again(err error, try int) bool {
	switch {
	case h.wire.banner.Load():
		return false
	case code(err) == codeThrottled:
		return true
	}
	// A proxy command ends like this for reasons of its own.
	return code(err) == codeClosed && try < maxSilent && h.config.ProxyCommand == ""
}
