package ssh

import (
	"context"
	"errors"
	"net"
	"strings"

	gossh "golang.org/x/crypto/ssh"
)

// scanned are the algorithms that ScanHostKeys asks for, one per type of key.
var scanned = [][]string{
	{gossh.KeyAlgoED25519},
	{gossh.KeyAlgoECDSA256, gossh.KeyAlgoECDSA384, gossh.KeyAlgoECDSA521},
	{gossh.KeyAlgoRSASHA512, gossh.KeyAlgoRSASHA256},
}

// ScanHostKeys returns the host keys that a machine shows, one of a type at
// most, without entering it. The way to it is walked as Dial walks it: bastions
// are entered, and their keys are checked. config.HostKeys is not asked; what
// to think of the keys is the caller's to decide. They are all from one address,
// but behind a bastion, which looks the name up each time.
func ScanHostKeys(ctx context.Context, config Config) ([]gossh.PublicKey, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	var bastion *conn
	if config.Jump != nil {
		joined, leave, err := config.joinJump(ctx)
		if err != nil {
			return nil, err
		}
		defer leave()
		bastion = joined
	}
	var keys []gossh.PublicKey
	var failed error
	for _, algorithms := range scanned {
		key, err := config.shownKey(ctx, bastion, algorithms)
		switch {
		case key != nil:
			keys = append(keys, key)
		case ctx.Err() != nil || unreached(err):
			return nil, err // some of the keys would look like all
		case failed == nil || lacksKey(failed):
			failed = err // dropbear dies of a request for a key that it lacks
		}
	}
	if len(keys) == 0 {
		return nil, failed
	}
	return keys, nil
}

// lacksKey reports whether a machine just has no key of the type that it was
// asked for.
func lacksKey(err error) bool {
	var none *gossh.AlgorithmNegotiationError
	return errors.As(err, &none) && none.What == "host key"
}

// unreached reports whether an error is about the way to a machine, or that it is
// busy, and not about the key that it was asked for: that is named behind the banner.
func unreached(err error) bool {
	layer, _, _ := strings.Cut(code(err), ".")
	return layer == "dns" || layer == "tcp" || layer == "proxy" || code(err) == codeThrottled || FailedPhase(err) == "banner" || errors.Is(err, context.DeadlineExceeded)
}

var errSeen = errors.New("the key was seen")

// shownKey returns the key that the machine shows when these are the only
// algorithms that the client has.
func (c *Config) shownKey(ctx context.Context, bastion *conn, algorithms []string) (key gossh.PublicKey, err error) {
	ctx, clock := newClock(ctx, c.ConnectTimeout)
	defer clock.stop()
	raw, err := c.carrier(ctx, clock, bastion)
	if err != nil {
		return nil, err
	}
	if bastion == nil && c.ProxyCommand == "" {
		c.at = raw.RemoteAddr().String() // the name may be another machine's in a moment
	}
	h := &handshake{config: c, clock: clock, wire: newWire(raw)}
	defer bury(raw)
	defer h.wire.Close()
	stop := context.AfterFunc(ctx, func() { h.wire.Close() })
	defer stop()
	_, _, _, err = gossh.NewClientConn(h.wire, c.hostPort(), &gossh.ClientConfig{
		User: c.User, ClientVersion: clientVersion, HostKeyAlgorithms: algorithms,
		HostKeyCallback: func(_ string, _ net.Addr, shown gossh.PublicKey) error {
			key = shown
			return errSeen
		},
	})
	if key != nil {
		return key, nil
	}
	return nil, h.explained(h.failure(ctx, err))
}
