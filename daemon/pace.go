package daemon

import (
	"context"
	"sync"
	"time"
)

// maxStall is for how long a caller may take nothing before the command goes on
// without it: a program that was stopped holds nobody up.
const maxStall = 10 * time.Second

// A pace makes a command wait for the caller that started it and follows it to
// its end, as a pipe does: what the transcript drops, that one would miss. The
// zero value holds up nobody.
type pace struct {
	// lead is by how many bytes the command may be ahead: far less than the
	// transcript keeps, whose records take some that are no output.
	lead int64

	mu      sync.Mutex
	at      int64         // what the caller has been sent
	stalled bool          // it has taken nothing for maxStall
	moved   chan struct{} // closed and replaced when it takes something; nil: nobody follows
}

// join begins with a caller that is at a cursor, until leave is called.
func (p *pace) join(at int64) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.stalled, p.moved = at, false, make(chan struct{})
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		close(p.moved)
		p.moved = nil
	}
}

// move notes what the caller has been sent.
func (p *pace) move(at int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.stalled = at, false
	close(p.moved)
	p.moved = make(chan struct{})
}

// hold waits until the caller is near a cursor, is gone, or has stalled.
func (p *pace) hold(ctx context.Context, end int64) {
	for {
		p.mu.Lock()
		moved := p.moved
		free := moved == nil || p.stalled || end-p.at <= p.lead
		p.mu.Unlock()
		if free {
			return
		}
		stall := time.NewTimer(maxStall)
		select {
		case <-moved:
		case <-stall.C:
			p.stall(moved)
		case <-ctx.Done():
			return
		}
		stall.Stop()
	}
}

// free holds up nobody until the caller takes something: the command is to end.
func (p *pace) free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = true
	if p.moved != nil {
		close(p.moved)
		p.moved = make(chan struct{})
	}
}

// stall gives up a caller that has not moved since.
func (p *pace) stall(since chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = p.stalled || p.moved == since
}
