// Package netsim puts a simulated network between a client and a server of a
// test: a TCP proxy on loopback that delays, counts, stalls, truncates and cuts.
package netsim

import (
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// A Direction is one way through a [Proxy].
type Direction int

const (
	Up   Direction = iota // from the client to the server
	Down                  // from the server to the client
)

func (d Direction) String() string { return [...]string{"up", "down"}[d] }

// How says how a connection breaks.
type How int

const (
	RST  How = iota // both ends see a reset
	FIN             // both ends see an end of file
	Hang            // neither end sees anything: what comes is taken, and never arrives
)

func (h How) String() string { return [...]string{"RST", "FIN", "hang"}[h] }

// A Proxy forwards TCP connections to one target. All methods may be called
// concurrently.
type Proxy struct {
	listener net.Listener
	target   string
	pumps    sync.WaitGroup

	mu     sync.Mutex // guards what follows
	delay  time.Duration
	links  map[*link]bool
	conns  int
	closed bool
	dir    [2]flow
}

// flow is the state of one direction, over all connections.
type flow struct {
	bytes   int64
	limit   int64         // bytes still let through; negative: no limit
	how     How           // the cut at the limit
	stalled chan struct{} // closed on Resume; nil while not stalled
}

// Start starts a proxy to target and ends it with the test. Every byte leaves
// delay after it came, in order and at any bandwidth, so that a round trip
// takes 2 × delay. TCP's own handshake is with the proxy and takes no time.
func Start(t testing.TB, target string, delay time.Duration) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, target: target, delay: delay, links: map[*link]bool{}}
	p.dir[Up].limit, p.dir[Down].limit = -1, -1
	p.pumps.Go(p.accept)
	t.Cleanup(p.Close)
	return p
}

// Addr returns the address to connect to in place of the target's.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Port returns the port of Addr.
func (p *Proxy) Port() int { return p.listener.Addr().(*net.TCPAddr).Port }

// Close cuts all connections, refuses further ones and waits for the proxy's goroutines.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.listener.Close()
	for _, l := range p.current() {
		l.cut(RST)
		l.close() // a link that was cut with FIN still waits for its ends
	}
	p.pumps.Wait()
}

// SetDelay changes the delay of what arrives from now on.
func (p *Proxy) SetDelay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Bytes returns how many bytes were forwarded in the direction.
func (p *Proxy) Bytes(d Direction) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dir[d].bytes
}

// Conns returns how many connections were accepted.
func (p *Proxy) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conns
}

// Cut ends all connections, or makes them hang for ever. Bytes under way are
// lost. Later connections are served.
func (p *Proxy) Cut(how How) {
	for _, l := range p.current() {
		l.cut(how)
	}
}

// current returns the links of the moment.
func (p *Proxy) current() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.links))
}

// Stall stops the forwarding in the directions, or in both if none is given,
// for present and later connections, until Resume. Nothing is lost and nothing
// tells the ends.
func (p *Proxy) Stall(directions ...Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range orBoth(directions) {
		if p.dir[d].stalled == nil {
			p.dir[d].stalled = make(chan struct{})
		}
	}
}

// Resume ends a Stall in the directions, or in both if none is given.
func (p *Proxy) Resume(directions ...Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range orBoth(directions) {
		if p.dir[d].stalled != nil {
			close(p.dir[d].stalled)
			p.dir[d].stalled = nil
		}
	}
}

func orBoth(directions []Direction) []Direction {
	if len(directions) == 0 {
		return []Direction{Up, Down}
	}
	return directions
}

// Truncate lets n more bytes through in the direction, over all connections,
// and cuts the connection that brings more, in both directions. A negative n takes the limit away.
func (p *Proxy) Truncate(d Direction, n int64, how How) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dir[d].limit, p.dir[d].how = n, how
}

// accept ends when the listener is closed.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.pumps.Go(func() { p.serve(client.(*net.TCPConn)) })
	}
}

// serve ends when both directions have.
func (p *Proxy) serve(client *net.TCPConn) {
	conn, err := net.DialTimeout("tcp", p.target, 10*time.Second)
	if err != nil {
		client.SetLinger(0)
		client.Close()
		return
	}
	l := &link{ends: [2]*net.TCPConn{client, conn.(*net.TCPConn)}, done: make(chan struct{}), over: [2]chan struct{}{make(chan struct{}), make(chan struct{})}}
	p.mu.Lock()
	p.conns++
	p.links[l] = true
	closed := p.closed
	p.mu.Unlock()
	if closed {
		l.cut(RST)
	}
	var both sync.WaitGroup
	both.Go(func() { p.forward(l, Up) })
	both.Go(func() { p.forward(l, Down) })
	both.Wait()
	l.close()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// passed takes n bytes that are about to be forwarded into account. It returns
// how many of them may pass and whether the connection is to be cut after them.
func (p *Proxy) passed(d Direction, n int) (allowed int, cut bool, how How) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &p.dir[d]
	if f.limit >= 0 && int64(n) > f.limit {
		n, cut = int(f.limit), true
	}
	if f.limit >= 0 {
		f.limit -= int64(n)
	}
	f.bytes += int64(n)
	return n, cut, f.how
}

// stalled returns nil, or a channel that is closed when the stall ends.
func (p *Proxy) stalled(d Direction) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dir[d].stalled
}

func (p *Proxy) currentDelay() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delay
}
