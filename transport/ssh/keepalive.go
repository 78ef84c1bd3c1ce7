package ssh

import (
	"fmt"
	"time"
)

// maxMissed is how many signs of life may be missing, one per interval.
const maxMissed = 3

// keepalive ends a connection whose peer has gone silent. TCP alone notices
// that after a quarter of an hour, and only if there is something to send.
func (c *conn) keepalive() {
	ticker := time.NewTicker(c.config.Keepalive)
	defer ticker.Stop()
	answered := make(chan struct{}, 1)
	pending, missed, heard := false, 0, c.wire.heard.Load()
	for {
		select {
		case <-c.ended:
			return
		case <-answered:
			pending, missed = false, 0
		case <-ticker.C:
			if now := c.wire.heard.Load(); now != heard {
				// Whoever sends is alive, even if the answer queues behind much output.
				heard, missed = now, 0
				continue
			}
			if pending {
				if missed++; missed >= maxMissed {
					c.fail(fmt.Errorf("no sign of life for %v", maxMissed*c.config.Keepalive))
					return
				}
				continue
			}
			pending = true
			// Without a timer of its own: a dead connection lets go of it. Failure is
			// an answer too; servers that know nothing of the request send that.
			c.spawn(func() {
				if _, _, err := c.mux.SendRequest("keepalive@openssh.com", true, nil); err == nil {
					answered <- struct{}{}
				}
			})
		}
	}
}
