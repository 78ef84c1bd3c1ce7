package ssh

import (
	"context"
	"sync"
	"time"
)

// A clock ends a context after a time from which a person's thinking is
// excluded.
type clock struct {
	cancel context.CancelCauseFunc

	mu      sync.Mutex // guards what follows
	timer   *time.Timer
	left    time.Duration // at the time of started
	started time.Time
	paused  int // pauses nest: a passphrase is asked for within a signature
}

// newClock returns a context that ends with errTimeout after d, unless ctx
// ends before. Stop must be called.
func newClock(ctx context.Context, d time.Duration) (context.Context, *clock) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &clock{cancel: cancel, left: d, started: time.Now()}
	c.timer = time.AfterFunc(d, func() { cancel(errTimeout) })
	return ctx, c
}

// pause stops the clock until the function that it returns is called.
func (c *clock) pause() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused == 0 && c.timer.Stop() {
		c.left -= time.Since(c.started)
	}
	c.paused++
	return c.resume
}

func (c *clock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused--; c.paused == 0 {
		c.started = time.Now()
		c.timer.Reset(max(c.left, 0))
	}
}

// stop ends the context, if the time has not.
func (c *clock) stop() {
	c.mu.Lock()
	c.timer.Stop()
	c.mu.Unlock()
	c.cancel(nil)
}

// timeLeft is how long the clock will run on.
func (c *clock) timeLeft() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused > 0 {
		return c.left
	}
	return c.left - time.Since(c.started)
}
