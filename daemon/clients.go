package daemon

import (
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"time"
)

// clients are the callers that have said that they are there. What they opened
// is theirs: it goes some time after them.
type clients struct {
	grace   time.Duration
	closeOf func(client string)

	mu    sync.Mutex
	there map[string]bool
}

func newClients(grace time.Duration, closeOf func(string)) *clients {
	return &clients{grace: grace, closeOf: closeOf, there: map[string]bool{}}
}

// join returns the id of a new client.
func (c *clients) join() string {
	id := "c-" + rand.Text()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.there[id] = true
	return id
}

func (c *clients) has(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.there[id]
}

// gone closes what the client has opened after the grace: a client's update or
// a cut of its network is no reason to end its work at once.
func (c *clients) gone(id string) {
	c.mu.Lock()
	delete(c.there, id)
	c.mu.Unlock()
	time.AfterFunc(c.grace, func() { c.closeOf(id) })
}

// closeOf closes the sessions of a client that were not to be kept.
func (d *Daemon) closeOf(client string) {
	d.mu.Lock()
	open := slices.Collect(maps.Values(d.sessions))
	d.mu.Unlock()
	for _, s := range open {
		if s.leftBy(client) {
			go s.closeFree("the client that opened it is gone") // bounded by the session's end
		}
	}
}

// leftBy reports whether the session is a client's that is gone. If another one that
// is there ran the last command, it is that one's from now on: an agent that was
// started again goes on in the sessions of before.
func (s *live) leftBy(client string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == client && s.runner != client && s.daemon.clients.has(s.runner) {
		s.client = s.runner
	}
	return s.client == client && !s.options.Keep
}
