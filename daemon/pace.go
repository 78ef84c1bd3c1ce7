package daemon

import (
	"context"
	"sync"
	"time"
)

// For how long a caller may take nothing before the command goes on without it: a
// program that was stopped holds nobody up, and a command that is to end even less.
const (
	maxStall = 10 * time.Second
	endStall = 100 * time.Millisecond
)

// A pace makes a command wait for the caller that started it and follows it to
// its end, as a pipe does: what the transcript drops, that one would miss. The
// zero value holds up nobody.
type pace struct {
	lead int64 // by how many bytes the command may be ahead

	mu      sync.Mutex
	caller  *follower // of the last command that was followed; nil: nobody
	at      int64     // what it has been sent
	hurried time.Time // when the command was told to end
	stalled bool      // it has taken nothing for so long
	moved   bell      // rung when it takes something, or leaves
}

// leadOf returns by how many bytes a command may be ahead where the transcript takes
// limit: less than that keeps if each record has but one byte of output.
func leadOf(limit int64) int64 { return limit / 32 }

// join makes f the caller. That of an earlier command may still be reading.
func (p *pace) join(f *follower) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.caller, p.at, p.hurried, p.stalled = f, f.at, time.Time{}, false
	p.moved.ring()
}

// leave ends what join began.
func (p *pace) leave(f *follower) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.caller == f {
		p.caller = nil
		p.moved.ring()
	}
}

// move notes what the caller has been sent.
func (p *pace) move(f *follower) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.caller == f {
		p.at, p.stalled = f.at, false
		p.moved.ring()
	}
}

// hold waits until the caller is near a cursor, is gone, or has stalled.
func (p *pace) hold(ctx context.Context, end int64) {
	for {
		p.mu.Lock()
		if p.caller == nil || p.stalled || end-p.at <= p.lead {
			p.mu.Unlock()
			return
		}
		moved, patience := p.moved.next(), p.patience()
		p.mu.Unlock()
		select {
		case <-moved:
		case <-time.After(patience):
			p.giveUp(moved)
		case <-ctx.Done():
			return
		}
	}
}

// hurry holds up little for a while: the command is to end. It need not.
func (p *pace) hurry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hurried = time.Now()
	p.moved.ring()
}

// patience returns for how long nothing may be taken now. The pace is locked.
func (p *pace) patience() time.Duration {
	if time.Since(p.hurried) < maxStall {
		return endStall
	}
	return maxStall
}

// giveUp gives up a caller that has not moved since.
func (p *pace) giveUp(moved <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = p.stalled || !isClosed(moved)
}
