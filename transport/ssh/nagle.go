package ssh

import (
	"bytes"
	"net"
	"time"

	gossh "golang.org/x/crypto/ssh"
)

const (
	// refusals are so many that they fill a segment on Ethernet (1,460 bytes) together with
	// what they follow: the shortest one takes 60 (chacha20-poly1305).
	refusals = 24
	// behind is how long after an opening they are asked for, so that it is ahead of them.
	behind = time.Millisecond / 2
	// nearby is a round trip that is not worth it.
	nearby = 5 * time.Millisecond
	// pause is how long the rest of an answer may take to come by itself.
	pause = time.Millisecond / 2
)

// hurry has sshd answer the first openings without a round trip's wait. After the login it
// announces its host keys, in a segment that is not full; until its first program
// starts it leaves Nagle's algorithm on (RFC 896), which holds back one more such segment
// until the one before is acknowledged, but not a full one. Channels of a kind that
// sshd refuses, without a line in its log, fill it.
func (c *conn) hurry() {
	if !bytes.HasPrefix(c.mux.ServerVersion(), []byte("SSH-2.0-OpenSSH_")) {
		return
	}
	if trip := roundTrip(c.wire.byteStream); trip != 0 && trip < nearby {
		return
	}
	time.AfterFunc(behind, func() {
		for range refusals {
			c.spawn(c.openNothing)
		}
	})
}

// openNothing returns when the peer has refused it, or with the connection.
func (c *conn) openNothing() {
	channel, requests, err := c.mux.OpenChannel("none@gateway", nil)
	if err != nil {
		return
	}
	_ = channel.Close() // an error means that the connection is dead
	gossh.DiscardRequests(requests)
}

// nudges has nudge called in each pause behind what has come, unless the connection is
// TCP, which this kernel acknowledges.
func (c *conn) nudges() {
	if _, direct := c.wire.byteStream.(*net.TCPConn); !direct && !c.terse {
		c.wire.nudge.Store(time.AfterFunc(pause, c.nudge))
	}
}

// nudge sends something that needs no answer. Behind a bastion or a proxy command another
// kernel acknowledges what an sshd sends to it: 40 ms later, unless it has data to
// send the same way. Until then that sshd holds back what else it has to say.
func (c *conn) nudge() {
	if !c.nudging.CompareAndSwap(false, true) {
		return // the link is full
	}
	c.spawn(func() {
		_, _, _ = c.mux.SendRequest("keepalive@openssh.com", false, nil) // an error means that the connection is dead
		c.nudging.Store(false)
	})
}
