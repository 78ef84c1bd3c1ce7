package netsim

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// window bounds what is under way in one direction of one connection. With
// less the delay would limit the bandwidth, without a bound a writer would
// never feel that nobody reads.
const window = 16 << 20

// chunkSize is how much is read at once; window/chunkSize chunks are under way.
const chunkSize = 64 << 10

// link is one proxied connection. ends[Up] is the client, whose bytes go up.
type link struct {
	ends [2]*net.TCPConn
	once sync.Once
	done chan struct{}    // closed when the link is cut: what is under way is lost
	hung atomic.Bool      // what comes is dropped
	over [2]chan struct{} // closed when nothing more is passed in the direction
}

// cut ends the link for both ends. One that hangs may be cut for good.
func (l *link) cut(how How) {
	if how == Hang {
		l.hung.Store(true)
		return
	}
	l.once.Do(func() {
		close(l.done)
		for _, end := range l.ends {
			if how == RST {
				end.SetLinger(0) // a close with it sends RST, socket(7)
				end.Close()
			} else {
				// A full close with bytes unread would send RST after all. The
				// readers go on and drop, until the ends close theirs.
				end.CloseWrite()
			}
		}
	})
}

// close gives the sockets back.
func (l *link) close() {
	for _, end := range l.ends {
		end.Close()
	}
}

// chunk is what one read brought, and when it may leave. Without data it is
// the end of file, or a reset, which does not overtake what was sent before it.
type chunk struct {
	data  []byte
	due   time.Time
	reset bool
}

// forward moves one direction until its source ends or the link is cut. An
// end of file is passed on behind the bytes; the other direction goes on.
func (p *Proxy) forward(l *link, d Direction) {
	queue := make(chan chunk, window/chunkSize)
	var reader sync.WaitGroup
	reader.Go(func() { p.read(l, d, queue) })
	err := p.write(l, d, queue)
	close(l.over[d])
	if err != nil { // that end is gone, and what it said before is under way
		select {
		case <-l.over[1-d]:
		case <-l.done:
		}
		l.cut(RST)
	}
	reader.Wait()
}

// read ends with its source, which a cut with RST closes. After a cut it drops
// what comes.
func (p *Proxy) read(l *link, d Direction, queue chan<- chunk) {
	buf := make([]byte, chunkSize)
	for {
		n, err := l.ends[d].Read(buf)
		c := chunk{data: append([]byte(nil), buf[:n]...), due: time.Now().Add(p.currentDelay()), reset: err != nil && err != io.EOF}
		select {
		case queue <- c:
		case <-l.done:
		}
		if err != nil {
			return
		}
	}
}

// write ends behind the end of file, or when the link is cut. Its error is that the
// end that it writes to is gone.
func (p *Proxy) write(l *link, d Direction, queue <-chan chunk) error {
	to := l.ends[1-d]
	for {
		var c chunk
		select {
		case c = <-queue:
		case <-l.done:
			return nil
		}
		if !p.wait(l, d, c.due) {
			return nil
		}
		if c.reset {
			l.cut(RST) // the one end's reset is the other's
			return nil
		}
		if l.hung.Load() {
			continue // until the link is cut or closed by an end
		}
		if len(c.data) == 0 {
			to.CloseWrite()
			return nil
		}
		n, cut, how := p.passed(d, len(c.data))
		if _, err := to.Write(c.data[:n]); err != nil {
			return err
		}
		if cut {
			l.cut(how)
			if how != Hang {
				return nil
			}
		}
	}
}

// wait waits for the time and for the end of a stall. It reports whether the
// link is still whole.
func (p *Proxy) wait(l *link, d Direction, due time.Time) bool {
	if left := time.Until(due); left > 0 {
		select {
		case <-time.After(left):
		case <-l.done:
			return false
		}
	}
	for {
		stalled := p.stalled(d)
		if stalled == nil {
			return true
		}
		select {
		case <-stalled:
		case <-l.done:
			return false
		}
	}
}
