package ssh

import (
	"context"
	"sync"
)

// maxHandshakes is how many handshakes with one machine, or through one bastion,
// may be in flight. Of 100 at once sshd's MaxStartups (10:30:100) drops 40; eight
// at a time all get through, and no slower. Behind a bastion many addresses may be
// one machine.
const maxHandshakes = 8

// handshakes counts those of the whole process.
var handshakes = gate{lanes: map[string]*lane{}}

// A gate lets a few at a time through each of its lanes.
type gate struct {
	mu    sync.Mutex // guards lanes
	lanes map[string]*lane
}

type lane struct {
	places chan struct{}
	users  int // in it or waiting; the gate's mu guards it
}

// enter waits for a place, which the returned function gives back.
func (g *gate) enter(ctx context.Context, key string) (leave func(), err error) {
	g.mu.Lock()
	l := g.lanes[key]
	if l == nil {
		l = &lane{places: make(chan struct{}, maxHandshakes)}
		g.lanes[key] = l
	}
	l.users++
	g.mu.Unlock()
	forget := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(g.lanes, key)
		}
	}
	select {
	case l.places <- struct{}{}:
		return func() { <-l.places; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, ctx.Err()
	}
}
