package mcpserver

import (
	"context"
	"path"
	"strings"
	"sync"
	"time"

	"gateway/gateway"
	"gateway/transfer"
	"gateway/transport"
)

// machines keep the files of hosts at hand for a while, so that a call after
// another one needs no connection of its own.
type machines struct {
	gateway *gateway.Gateway

	mu     sync.Mutex
	closed bool
	of     map[string]*machine // by the host's name
}

// A machine is the files of one host.
type machine struct {
	transfer.Machine
	home string

	opened chan struct{} // closed once Machine, home and over are set, or err is
	err    error
	over   chan struct{} // closed with Machine, where its connection is lent

	users int // guarded by the machines' mu, as is what follows
	gone  bool
	idle  *time.Timer
}

// lingering is how long the files of a host that nobody uses stay open.
const lingering = time.Minute

// get returns the files of a host, which release gives back. fresh: nobody has
// used them before.
func (ms *machines) get(ctx context.Context, host string) (m *machine, fresh bool, err error) {
	ms.mu.Lock()
	if ms.closed {
		ms.mu.Unlock()
		return nil, false, transport.ErrClosed
	}
	m = ms.of[host]
	if fresh = m == nil; fresh {
		m = &machine{opened: make(chan struct{})}
		if ms.of == nil {
			ms.of = map[string]*machine{}
		}
		ms.of[host] = m
		// It is for all who wait for it, so none of them ends it.
		go ms.open(context.WithoutCancel(ctx), m, host)
	}
	if m.users++; m.idle != nil {
		m.idle.Stop()
	}
	ms.mu.Unlock()
	select {
	case <-m.opened:
		err = m.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		ms.release(host, m, false)
		return nil, false, err
	}
	return m, fresh, nil
}

// open ends within openTime.
func (ms *machines) open(ctx context.Context, m *machine, host string) {
	defer close(m.opened)
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	connection, err := ms.gateway.Connect(ctx, host, "")
	if err == nil {
		m.Machine, err = transfer.Open(ctx, connection)
	}
	if err == nil {
		if m.home, err = m.Home(ctx); err != nil {
			m.Machine.Close()
		}
	}
	if err != nil && ctx.Err() != nil {
		err = late(host, "files", err)
	}
	if m.err = err; err != nil { // who comes now may do better
		ms.mu.Lock()
		defer ms.mu.Unlock()
		ms.forget(host, m)
		return
	}
	if lent, ok := connection.Transport.(interface{ Ending() <-chan struct{} }); ok {
		m.over = make(chan struct{})
		go ms.leave(lent.Ending(), host, m) // ends with the machine
	}
}

// leave gives a machine up once the daemon that has lent its connection is about to end,
// which waits for all who use one.
func (ms *machines) leave(ending <-chan struct{}, host string, m *machine) {
	select {
	case <-ending:
	case <-m.over:
		return
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if m.users == 0 && !m.gone {
		m.idle.Stop()
		go m.close()
	}
	ms.forget(host, m)
}

// release gives a machine back. gone: nobody else is to get it.
func (ms *machines) release(host string, m *machine, gone bool) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if gone || ms.closed {
		ms.forget(host, m)
	}
	if m.users--; m.users > 0 {
		return
	}
	if m.gone {
		go m.close()
		return
	}
	m.idle = time.AfterFunc(lingering, func() {
		ms.mu.Lock()
		defer ms.mu.Unlock()
		if m.users == 0 && !m.gone {
			ms.forget(host, m)
			go m.close()
		}
	})
}

// forget is called with the lock.
func (ms *machines) forget(host string, m *machine) {
	m.gone = true
	if ms.of[host] == m {
		delete(ms.of, host)
	}
}

func (m *machine) close() {
	<-m.opened
	if m.err == nil {
		m.Machine.Close()
		if m.over != nil {
			close(m.over)
		}
	}
}

// close closes what nobody uses, and the rest once nobody does.
func (ms *machines) close() {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.closed = true
	for host, m := range ms.of {
		ms.forget(host, m)
		if m.idle != nil {
			m.idle.Stop()
		}
		if m.users == 0 {
			go m.close()
		}
	}
}

// absolute returns a path that begins at the root: ~ is the home, where a
// relative one begins, too.
func (m *machine) absolute(name string) string {
	switch {
	case name == "~":
		return m.home
	case path.IsAbs(name):
		return name
	}
	return strings.TrimRight(m.home, "/") + "/" + strings.TrimPrefix(name, "~/")
}
