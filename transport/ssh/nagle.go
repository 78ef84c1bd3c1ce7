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
	// delayed and longDelayed are about how long Linux holds an ACK back (TCP_DELACK_MIN
	// and TCP_DELACK_MAX: 40 and 200 ms), whose timer may run out a little before.
	delayed, longDelayed = 35 * time.Millisecond, 200 * time.Millisecond
	// heldReads is for how many reads it is believed that answers are held back.
	heldReads = 1024
)

// held notices that the second part of each answer comes a delayed ACK later than the
// first. The server then has Nagle's algorithm on, as those made with paramiko and with
// Node's ssh2, or what stands between here and there has: sslh, socat, a proxy.
type held struct {
	first bool // the last read was of an answer's first part
	late  int  // answers in a row whose second part was late
}

// sees takes note of a read: whether something was written before it, and how long the one
// before that is ago. It reports whether three answers in a row were held back: a
// program may pause for as long once.
func (h *held) sees(asked bool, gap time.Duration) bool {
	second := h.first && !asked
	h.first = asked
	switch {
	case !second:
		return false
	case gap < delayed || gap > longDelayed:
		h.late = 0
		return false
	}
	h.late++
	return h.late%3 == 0
}

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
		timer := time.AfterFunc(pause, c.nudge)
		timer.Stop() // nothing has come
		c.wire.nudge.Store(timer)
	}
}

// nudge sends something that needs no answer. Behind a bastion or a proxy command another
// kernel acknowledges what an sshd sends to it: 40 ms later, unless it has data to
// send the same way. Until then that sshd holds back what else it has to say.
//
// With most other proxy commands nothing is held back, and a nudge would do harm: nc and
// socat leave Nagle's algorithm on, so a command that follows within 40 ms waits until the
// nudge, which nobody answers, is acknowledged. Hence [held] there.
func (c *conn) nudge() {
	if !c.nudging.CompareAndSwap(false, true) {
		return // the link is full
	}
	c.spawn(func() {
		_, _, _ = c.mux.SendRequest("keepalive@openssh.com", false, nil) // an error means that the connection is dead
		c.nudging.Store(false)
	})
}
