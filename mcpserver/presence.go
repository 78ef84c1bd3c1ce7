package mcpserver

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/daemon/client"
)

// presences tell the daemon which clients are there. What a client opened goes
// a while after it.
type presences struct {
	mu sync.Mutex
	of map[any]*presence
}

// A presence is one client's. A client of the stateless era has no session that
// could end; those of one scope share a presence, which ends when none of them
// has called for a while.
type presence struct {
	mu     sync.Mutex
	ctx    context.Context
	cancel context.CancelFunc
	id     string          // the daemon's word for it; empty until it is needed
	over   <-chan struct{} // the daemon has forgotten it
	asking *asking         // for it; nil: nobody is

	calls int // of a client without a session
	timer *time.Timer
}

// An asking is a request that several calls wait for.
type asking struct {
	done chan struct{} // closed once id or err is set
	id   string
	err  error
}

type stateless struct{}

// keyOf returns what tells clients apart.
func keyOf(req *mcp.CallToolRequest) any {
	if req.Extra != nil && req.Extra.Header != nil && req.Session.ID() == "" {
		return stateless{}
	}
	return req.Session
}

// get returns the presence of who calls.
func (p *presences) get(req *mcp.CallToolRequest) *presence {
	key := keyOf(req)
	p.mu.Lock()
	defer p.mu.Unlock()
	if here := p.of[key]; here != nil {
		return here
	}
	here := &presence{}
	here.ctx, here.cancel = context.WithCancel(context.Background())
	if p.of == nil {
		p.of = map[any]*presence{}
	}
	p.of[key] = here
	if _, ok := key.(stateless); !ok {
		go func() { // ends with the client's session
			_ = req.Session.Wait() // how it ended makes no difference
			here.cancel()
			p.remove(key, here)
		}()
	}
	return here
}

func (p *presences) remove(key any, here *presence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[key] == here {
		delete(p.of, key)
	}
}

// seen notes a call of a client without a session; the returned function notes
// its end.
func (p *presences) seen(req *mcp.CallToolRequest, absent time.Duration) func() {
	key := keyOf(req)
	if _, ok := key.(stateless); !ok {
		return func() {}
	}
	here := p.get(req)
	here.mu.Lock()
	defer here.mu.Unlock()
	here.calls++
	if here.timer != nil {
		here.timer.Stop()
	}
	return func() {
		here.mu.Lock()
		defer here.mu.Unlock()
		if here.calls--; here.calls == 0 {
			here.timer = time.AfterFunc(absent, func() {
				p.remove(key, here)
				here.cancel()
			})
		}
	}
}

func (p *presences) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, here := range p.of {
		here.cancel()
	}
	p.of = nil
}

// client returns the id under which the daemon knows that the client is there.
// The end of ctx ends the waiting only: other calls need the id, too.
func (p *presence) client(ctx context.Context, c *client.Client) (string, error) {
	p.mu.Lock()
	select {
	case <-p.over: // never, while there is none
		p.id = ""
	default:
	}
	id, asked := p.id, p.asking
	if id == "" && asked == nil {
		asked = &asking{done: make(chan struct{})}
		p.asking = asked
		go p.ask(c, asked) // bounded by the client
	}
	p.mu.Unlock()
	if id != "" {
		return id, nil
	}
	select {
	case <-asked.done:
		return asked.id, asked.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// ask asks the daemon for an id. Nothing is locked meanwhile: it may not answer.
func (p *presence) ask(c *client.Client, a *asking) {
	here, over, err := c.Presence(p.ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if a.id, a.err = here.Client, err; err == nil {
		p.id, p.over = a.id, over
	}
	p.asking = nil
	close(a.done)
}
