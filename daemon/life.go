// Package daemon keeps connections and sessions open between the calls of those
// who use them. It owns them: a caller that is killed loses nothing.
package daemon

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// DrainTime is how long sessions and requests may take to end with the daemon.
const DrainTime = 10 * time.Second

const (
	maxHeader  = 16 << 10
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute // of a connection between two requests
	// closeTime is how long closing may take once DrainTime is over: links that
	// went silent answer nothing.
	closeTime = 2 * time.Second
	// tellTime is how long requests may take to deliver what Drain has ended, and
	// then to notice that they are over.
	tellTime = 500 * time.Millisecond
)

// A Life says when the daemon ends, and what it is.
type Life struct {
	// Version is told to callers.
	Version string
	// Idle is how long the daemon stays without sessions and requests; 0 means
	// that it stays.
	Idle time.Duration
	// Sessions counts the sessions that are open, with those on their way.
	Sessions func() int
	// Drain ends the sessions. It has until the context ends. New requests are
	// refused by then; those in progress go on.
	Drain func(context.Context)
	// Log is told of broken connections and handlers that panic; nil drops it.
	Log *slog.Logger
}

// Serve answers on a listener until ctx ends, a caller asks the daemon to stop,
// or there was nothing to do for a while. Then it closes the listener, drains
// and returns nil. Before handler a request passes the handshake; hello and
// stop are answered here.
func Serve(ctx context.Context, l net.Listener, handler http.Handler, life Life) error {
	if life.Log == nil {
		life.Log = slog.New(slog.DiscardHandler)
	}
	g := newGate(handler, life)
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	server := &http.Server{
		Handler: g, BaseContext: func(net.Listener) context.Context { return requests },
		ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(life.Log.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }() // ends with the listener
	err := g.wait(ctx, served)
	// No later than this: a caller that comes must not find a door without a
	// room behind it, but start the next daemon.
	l.Close()
	g.drain(server, cut)
	return err
}

// drain ends the sessions, then the requests: first those that deliver what
// the sessions left, then those that would last.
func (g *gate) drain(server *http.Server, cut context.CancelFunc) {
	bound := DrainTime
	if g.forced.Load() {
		bound = 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		g.life.Drain(ctx)
	}()
	select {
	case <-drained:
	case <-time.After(bound + closeTime): // the end of the process is the end of the rest
		g.life.Log.Warn("sessions that do not close are left")
	}
	if shutdown(server) == nil {
		return
	}
	cut()
	if shutdown(server) != nil {
		server.Close()
	}
}

func shutdown(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), tellTime)
	defer cancel()
	return server.Shutdown(ctx)
}

// A gate counts requests, and is closed once.
type gate struct {
	life    Life
	routes  http.Handler
	started time.Time
	forced  atomic.Bool // what runs may not end by itself

	mu     sync.Mutex
	active int           // guarded by mu: requests in progress
	idle   int           // guarded by mu: those of them that only listen
	used   time.Time     // guarded by mu: when there was something to do
	ended  chan struct{} // closed under mu: nothing begins any more
}

// wait returns when the daemon is to end. Its error is that of a listener that
// failed.
func (g *gate) wait(ctx context.Context, served <-chan error) error {
	var look <-chan time.Time
	if g.life.Idle > 0 {
		ticker := time.NewTicker(max(g.life.Idle/10, time.Millisecond))
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		select {
		case <-g.ended:
			return nil
		case err := <-served:
			g.end()
			return err
		case <-ctx.Done():
			g.end()
		case <-look:
			g.endIfIdle()
		}
	}
}

// enter begins a request; idle: it only listens. It reports false if the daemon
// is ending.
func (g *gate) enter(idle bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over() {
		return false
	}
	g.active++
	if idle {
		g.idle++
	}
	return true
}

func (g *gate) leave(idle bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.active--
	if idle {
		g.idle--
	}
	g.used = time.Now()
}

func (g *gate) over() bool { return isClosed(g.ended) }

func (g *gate) endIfIdle() {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.active > 0 || g.life.Sessions() > 0:
		g.used = time.Now()
	case time.Since(g.used) >= g.life.Idle:
		g.close()
	}
}

// end ends the daemon, whatever goes on.
func (g *gate) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.close()
}

// endIfFree ends the daemon for a request, if nothing is open but that and those
// that only listen. Else it says what is. Under the lock nothing begins meanwhile.
func (g *gate) endIfFree() (sessions, requests int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	sessions, requests = g.life.Sessions(), g.active-g.idle-1
	if sessions == 0 && requests == 0 {
		g.close()
	}
	return sessions, requests
}

// close needs mu.
func (g *gate) close() {
	if !g.over() {
		close(g.ended)
	}
}
