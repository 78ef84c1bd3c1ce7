package ssh

import (
	"context"
	"slices"
	"sync"
	"time"

	"gateway/transport"
)

// Transport implements [transport.Transport] for one machine. Programs share
// connections: the first one is dialled by [Dial], more of them when it has no
// channel left, and a new one when all have died. Programs on a connection
// that died are lost, and nothing is ever sent again.
type Transport struct {
	config Config
	memory *memory

	mu     sync.Mutex // guards what follows
	conns  []*conn
	dial   *dialling // under way, or nil
	closed bool
	key    string // the machine's host key
	// answered: a person's answer opened one of the connections. asks: a further one would
	// ask again.
	answered, asks bool
	// shared is until when what is in no group has the connections that there are, also
	// where it should be on one of its own: there was no further one.
	shared time.Time

	reaping sync.WaitGroup

	// ends lets Close give up the dials under way.
	ends context.Context
	end  context.CancelFunc
}

var _ transport.Remote = (*Transport)(nil)

// Dial connects to a machine and authenticates. The error wraps a
// [*transport.Error], or [context.Canceled] if ctx was cancelled. It
// never tries a second time what was refused; a connection that the server
// turned away before the banner, where nothing was sent yet, is tried again
// within the timeout.
func Dial(ctx context.Context, config Config) (*Transport, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	t := &Transport{config: config.withDefaults()}
	if ask := t.config.Ask; ask != nil {
		t.memory = &memory{ask: ask, answers: make(map[Question]string), typed: make(map[Question]string)}
		t.config.Ask = t.memory.answer
	}
	t.ends, t.end = context.WithCancel(context.Background())
	if err := t.connect(ctx); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Alive reports whether a connection is open. One that has died silently counts
// until a sign of life was due.
func (t *Transport) Alive() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.closed && slices.ContainsFunc(t.conns, (*conn).alive)
}

// Answered reports whether [Config.Ask] was needed to get in, here or at a
// bastion on the way, be it for another transport that shares the bastion.
func (t *Transport) Answered() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.answered
}

// Account implements [transport.Remote]. A machine is known by its host key.
func (t *Transport) Account() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.config.User + "@" + t.key
}

// Close implements [transport.Transport].
func (t *Transport) Close() error {
	t.mu.Lock()
	t.closed = true
	conns := t.conns
	t.conns = nil
	t.mu.Unlock()
	t.end()
	var all sync.WaitGroup
	for _, c := range conns {
		all.Go(c.close)
	}
	all.Wait()
	t.reaping.Wait()
	return nil
}
