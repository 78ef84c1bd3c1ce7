package ssh

import (
	"fmt"
	"io"
	"time"
)

// maxMissed is how many signs of life may be missing, one per interval.
const maxMissed = 3

// A pulse ends a connection whose peer has gone silent. TCP alone notices that
// after a quarter of an hour, and only if there is something to send.
type pulse struct {
	ticks    <-chan time.Time // nil: nobody looks
	stop     func()
	answered chan struct{}
	pending  bool // a sign of life was asked for
	missed   int
	heard    int64
}

func newPulse(c *conn) *pulse {
	p := &pulse{stop: func() {}, answered: make(chan struct{}, 1), heard: c.wire.heard.Load()}
	if c.config.Keepalive > 0 {
		ticker := time.NewTicker(c.config.Keepalive)
		p.ticks, p.stop = ticker.C, ticker.Stop
	}
	return p
}

// beat looks what has come since the last one, and asks for a sign of life if
// nothing has.
func (p *pulse) beat(c *conn) {
	if now := c.wire.heard.Load(); now != p.heard {
		// Whoever sends is alive, even if the answer queues behind much output.
		p.heard, p.missed = now, 0
		return
	}
	if p.pending {
		if p.missed++; p.missed >= maxMissed {
			c.fail(fmt.Errorf("no sign of life for %v", maxMissed*c.config.Keepalive))
		}
		return
	}
	p.pending = true
	// Without a timer of its own: a dead connection lets go of it. Failure is an
	// answer too; servers that know nothing of the request send that.
	c.spawn(func() {
		if c.askForLife() == nil {
			p.answered <- struct{}{}
		}
	})
}

// askForLife returns once the peer has answered, or the connection has ended.
func (c *conn) askForLife() error {
	const request = "keepalive@openssh.com"
	if !c.terse {
		_, _, err := c.mux.SendRequest(request, true, nil)
		return err
	}
	ch := c.begun()
	if ch == nil {
		return nil // nothing would be lost
	}
	_, err := ch.remote.SendRequest(request, true, nil)
	if err == io.EOF && c.alive() {
		return nil // its end is a sign of life, too
	}
	return err
}

// begun returns a channel whose requests are answered, if there is one.
func (c *conn) begun() *channel {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ch := range c.channels {
		select {
		case <-ch.started:
			return ch
		default:
		}
	}
	return nil
}
