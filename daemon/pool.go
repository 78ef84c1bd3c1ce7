package daemon

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"gateway/gateway"
	"gateway/transport"
)

// pool holds the open connections. Those who ask for equal targets share one.
type pool struct {
	linger time.Duration // how long one that nobody uses stays open

	mu    sync.Mutex
	left  sync.Cond                // somebody has left a connection
	conns map[string][]*connection // by gateway.Target.Key
}

// A connection is one transport and those who use it.
type connection struct {
	key    string
	ready  chan struct{} // closed once transport or err is set
	opened transport.Transport
	err    error
	asked  bool // there was a person to ask
	users  int  // the pool's mu guards it
	idle   *time.Timer
}

func newPool(linger time.Duration) *pool {
	p := &pool{linger: linger, conns: map[string][]*connection{}}
	p.left.L = &p.mu
	return p
}

// get returns the transport to a target for the asker in ctx, and dials if there
// is none. release must be called once.
func (p *pool) get(ctx context.Context, target gateway.Target) (transport.Transport, func(), error) {
	who := askerOf(ctx)
	for {
		c, mine := p.join(target.Key(), who)
		if mine {
			p.dial(ctx, c, target)
		} else {
			select {
			case <-c.ready:
			case <-ctx.Done():
				p.leave(c)
				return nil, nil, context.Cause(ctx)
			}
		}
		switch {
		case c.err == nil && (mine || c.serves(who)):
			return c.opened, sync.OnceFunc(func() { p.leave(c) }), nil
		case c.err != nil:
			p.forget(c)
			p.leave(c)
			if mine || !isOfCaller(c.err) && c.asked == who.interactive {
				return nil, nil, c.err // what was refused once is not shown again
			}
		default:
			p.leave(c)
		}
	}
}

// isOfCaller reports whether a dial failed for its caller, who gave up, is gone, or has
// not the secret: that is nothing that the machine refused.
func isOfCaller(err error) bool {
	code := gateway.Code(err)
	return code == "cmd.interrupted" || code == "secret.unreadable" || errors.Is(err, errNobody)
}

// dial opens the connection that others may wait for. They do not wait for ever
// should it panic.
func (p *pool) dial(ctx context.Context, c *connection, target gateway.Target) {
	returned := false
	defer func() {
		if !returned {
			c.err = &transport.Error{Code: "internal", Message: "daemon: connecting to " + target.Name + " ended in a panic", Hint: "its log says where: report that"}
			p.forget(c)
			p.leave(c)
		}
		close(c.ready)
	}()
	c.opened, c.err = gateway.Dial(ctx, target, callerOf(askerOf(ctx)))
	returned = true
}

// warm returns the transport of an open connection that serves the caller, or
// none.
func (p *pool) warm(key string, who *asker) (t transport.Transport, release func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns[key] {
		if c.isReady() && c.err == nil && c.serves(who) && alive(c.opened) {
			p.use(c)
			return c.opened, sync.OnceFunc(func() { p.leave(c) }), true
		}
	}
	return nil, nil, false
}

// join finds a connection that may serve the caller, or makes one for the
// caller to dial.
func (p *pool) join(key string, who *asker) (c *connection, mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range slices.Clone(p.conns[key]) {
		switch {
		case !c.isReady() && c.asked && !who.interactive: // a person may take their time
		case !c.isReady():
			p.use(c)
			return c, false
		case !alive(c.opened):
			p.drop(c) // who uses it finds out by itself
		case c.serves(who):
			p.use(c)
			return c, false
		}
	}
	c = &connection{key: key, ready: make(chan struct{}), asked: who.interactive}
	p.conns[key] = append(p.conns[key], c)
	p.use(c)
	return c, true
}

// use counts a user. The pool is locked.
func (p *pool) use(c *connection) {
	c.users++
	if c.idle != nil {
		c.idle.Stop()
		c.idle = nil
	}
}

// leave counts one down, and closes what nobody has used for a while.
func (p *pool) leave(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.users--; c.users > 0 {
		return
	}
	p.left.Broadcast()
	if !slices.Contains(p.conns[c.key], c) {
		c.closeSoon()
		return
	}
	c.idle = time.AfterFunc(p.linger, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if c.users == 0 {
			p.drop(c)
			c.closeSoon()
		}
	})
}

// forget makes the next join dial.
func (p *pool) forget(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(c)
}

// drop takes a connection out. The pool is locked.
func (p *pool) drop(c *connection) {
	left := slices.DeleteFunc(p.conns[c.key], func(other *connection) bool { return other == c })
	if p.conns[c.key] = left; len(left) == 0 {
		delete(p.conns, c.key)
	}
}

// count returns how many connections are open.
func (p *pool) count() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, list := range p.conns {
		n += len(list)
	}
	return n
}

// unused waits until nobody uses a connection, or until ctx ends.
func (p *pool) unused(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.left.Broadcast()
	})()
	used := func(list []*connection) bool {
		return slices.ContainsFunc(list, func(c *connection) bool { return c.users > 0 })
	}
	for ctx.Err() == nil && slices.ContainsFunc(slices.Collect(maps.Values(p.conns)), used) {
		p.left.Wait()
	}
}

// close closes what is open. Nobody may use it any more.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all sync.WaitGroup
	for _, list := range p.conns {
		for _, c := range list {
			if c.idle != nil {
				c.idle.Stop()
			}
			if c.isReady() && c.opened != nil {
				all.Go(func() { c.opened.Close() })
			}
		}
	}
	clear(p.conns)
	all.Wait()
}

// callerOf lets the transport ask whoever waits for it: that is not always the
// one who dialled first.
func callerOf(first *asker) gateway.Caller {
	caller := gateway.Caller{
		Secret: func(ctx context.Context, reference string) (string, error) {
			return askerOf(ctx).secret(ctx, reference)
		},
		Warn: first.warn,
	}
	if first.interactive {
		caller.Ask = func(ctx context.Context, q gateway.Question) (string, error) {
			return askerOf(ctx).ask(ctx, q)
		}
	}
	return caller
}

// serves reports whether the caller may use an open connection. One that a
// person's answer opened is for people: an agent must not work with what
// somebody once typed.
func (c *connection) serves(who *asker) bool { return who.interactive || !answered(c.opened) }

func (c *connection) isReady() bool { return isClosed(c.ready) }

// closeSoon closes the transport, if there is one, without waiting for it.
func (c *connection) closeSoon() {
	if c.opened != nil {
		go c.opened.Close() // bounded by the transport's own timers
	}
}

// answered reports whether a person has answered for a transport or for what it
// runs over. One that can't tell asks nobody.
func answered(t transport.Transport) bool {
	a, ok := t.(interface{ Answered() bool })
	return ok && a.Answered()
}

// alive reports whether a transport still has its machine. One that can't tell
// has.
func alive(t transport.Transport) bool {
	if t, ok := t.(interface{ Alive() bool }); ok {
		return t.Alive()
	}
	return true
}
