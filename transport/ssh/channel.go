package ssh

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"gateway/transport"
)

// A channel is one channel of a connection whose reads, writes and end nobody
// has to wait for.
type channel struct {
	remote gossh.Channel
	conn   *conn
	group  string // see [transport.Together]

	// started is closed when data may be sent: in a session, once the machine
	// has said yes or no to its program, or that has said something: some servers never
	// answer. sshd's window is 0 until then anyway.
	started   chan struct{}
	startOnce sync.Once
	startErr  error // set before started is closed

	// gone is closed when x/crypto is done with the channel: the peer closed it,
	// or the connection is dead. lost tells which.
	gone chan struct{}
	lost bool // set before gone is closed

	// closed is closed by stop.
	closed    chan struct{}
	closeOnce sync.Once
	closeErr  error // set before closed is closed

	streams []*stream
	writer  writer
	left    atomic.Int32 // goroutines that close must be able to stop: serve and the pumps
}

func newChannel(c *conn, remote gossh.Channel, group string) *channel {
	ch := &channel{
		remote:  remote,
		conn:    c,
		group:   group,
		started: make(chan struct{}),
		gone:    make(chan struct{}),
		closed:  make(chan struct{}),
	}
	ch.left.Store(1) // serve
	c.mu.Lock()
	c.channels[ch] = true
	c.mu.Unlock()
	return ch
}

// read starts the pumps from sources into one stream. It must come before
// serve.
func (ch *channel) read(final func() error, sources ...io.Reader) *stream {
	s := newStream(len(sources), final)
	s.came = func() { ch.begin(nil) }
	for _, source := range sources {
		ch.left.Add(1)
		go func() { // ends with the connection or after stop, but for a call of whom it is delivered to
			s.pump(source)
			ch.leave()
		}()
	}
	ch.streams = append(ch.streams, s)
	return s
}

// begin lets data be sent, or gives err to who tries. The first call counts.
func (ch *channel) begin(err error) {
	ch.startOnce.Do(func() {
		ch.startErr = err
		close(ch.started)
	})
}

// leave counts a goroutine out; after the last the connection forgets the
// channel.
func (ch *channel) leave() {
	if ch.left.Add(-1) == 0 {
		ch.conn.mu.Lock()
		delete(ch.conn.channels, ch)
		ch.conn.unlock()
	}
}

// serve handles the requests of the peer until the channel is gone. It is the
// channel's one goroutine that lives as long as the channel does for the peer.
func (ch *channel) serve(requests <-chan *gossh.Request, handle func(*gossh.Request)) {
	for request := range requests {
		if handle != nil {
			handle(request)
		}
		if request.WantReply {
			// sshd asks for a sign of life like this (clientloop.c answers with a
			// failure too). An error means that the connection is dead.
			_ = request.Reply(false, nil)
		}
	}
	ch.lost = ch.conn.wire.broken.Load()
	close(ch.gone)
	ch.conn.release(ch.group)
	ch.leave()
}

// ended says what a reader gets after the last byte: io.EOF, or why the rest
// will never come.
func (ch *channel) ended() error {
	if !ch.conn.wire.broken.Load() {
		return io.EOF // before the link broke, if it did
	}
	<-ch.gone // at once: x/crypto ends a dead connection's channels together
	if !ch.lost {
		return io.EOF
	}
	return ch.conn.lostError()
}

// stop ends the channel for everyone on this side, who get err from now on,
// and tells the peer.
func (ch *channel) stop(err error, signal string) {
	ch.closeOnce.Do(func() {
		ch.closeErr = err
		close(ch.closed)
		for _, s := range ch.streams {
			s.stop(err)
		}
		// Sending blocks while the link is stalled or a key exchange is on.
		ch.conn.spawn(func() {
			if signal != "" {
				// sshd before 10.0 delivers no signal for root.
				_, _ = ch.remote.SendRequest("signal", false, gossh.Marshal(struct{ Name string }{signal}))
				if ch.conn.apart {
					ch.awaitEnd()
				}
			}
			_ = ch.remote.Close()
		})
	})
}

// endsWithin is how long a program that was hung up may take to end.
const endsWithin = 2 * time.Second

// awaitEnd keeps the channel, and with it its place on the connection, until its program
// has ended: an end of which nobody would be told may meet what comes next; see
// [conn.apart].
func (ch *channel) awaitEnd() {
	if w := &ch.writer; w.sending.TryLock() { // else it is stuck in a write
		_ = ch.remote.CloseWrite() // an error means that it is over
		w.sending.Unlock()
	}
	select {
	case <-ch.gone:
	case <-time.After(endsWithin):
	}
}

// ask sends a request that needs no answer, or gives up with the channel.
func (ch *channel) ask(name string, payload []byte) error {
	_, _, err := ch.send(func() (int, error) {
		_, err := ch.remote.SendRequest(name, false, payload)
		return 0, err
	})
	return err
}

// send does what may block until the peer confirms the end, or gives up with the
// channel. It takes a goroutine each time: one that stayed would cost an idle
// channel 4 KiB. n is what do returns; what it gave up may be done yet.
func (ch *channel) send(do func() (int, error)) (n int, gaveUp bool, err error) {
	type done struct {
		n   int
		err error
	}
	sent := make(chan done, 1)
	spawned := ch.conn.spawn(func() {
		n, err := do()
		sent <- done{n, err}
	})
	if !spawned {
		return 0, false, ch.writeError(io.EOF)
	}
	select {
	case d := <-sent:
		return d.n, false, ch.writeError(d.err)
	case <-ch.closed:
		return 0, true, ch.closeErr
	}
}

// writeError turns what x/crypto says about a channel that is over, io.EOF,
// into what a writer expects.
func (ch *channel) writeError(err error) error {
	if err == nil {
		return nil
	}
	select {
	case <-ch.closed:
		return ch.closeErr
	default:
	}
	if ch.conn.wire.broken.Load() {
		return ch.conn.lostError()
	}
	return io.ErrClosedPipe
}

// A writer is the writing end of a channel.
type writer struct {
	mu  sync.Mutex // one Write at a time
	eof bool       // CloseWrite was called
	// sending is held by what is under way of either, also when it was given up: x/crypto
	// takes one at a time.
	sending sync.Mutex
}

const maxWrite = 64 << 10

// chunks are buffers for what is being written.
var chunks = sync.Pool{New: func() any { return new([]byte) }}

// Write implements [io.Writer]. What was on its way when the channel was closed
// counts as written: it may arrive yet.
func (ch *channel) Write(p []byte) (int, error) {
	w := &ch.writer
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := ch.ready(); err != nil {
		return 0, err
	}
	if w.eof {
		return 0, io.ErrClosedPipe
	}
	written := 0
	for len(p) > 0 {
		n := min(len(p), maxWrite)
		chunk := chunks.Get().(*[]byte) // p is the caller's again when the channel is closed
		*chunk = append((*chunk)[:0], p[:n]...)
		sent, gaveUp, err := ch.send(func() (int, error) {
			defer chunks.Put(chunk)
			w.sending.Lock()
			defer w.sending.Unlock()
			return ch.remote.Write(*chunk)
		})
		if gaveUp {
			sent = n
		}
		written += sent
		if err != nil {
			return written, err
		}
		p = p[n:]
	}
	return written, nil
}

// CloseWrite gives the peer an end of file.
func (ch *channel) CloseWrite() error {
	w := &ch.writer
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.eof {
		return nil
	}
	w.eof = true
	if err := ch.ready(); err != nil {
		return err
	}
	_, _, err := ch.send(func() (int, error) {
		w.sending.Lock()
		defer w.sending.Unlock()
		return 0, ch.remote.CloseWrite()
	})
	return err
}

// ready waits until data may be sent.
func (ch *channel) ready() error {
	select {
	case <-ch.closed:
		return ch.closeErr
	case <-ch.started:
	}
	if ch.startErr != nil {
		return ch.startErr
	}
	select {
	case <-ch.closed:
		return ch.closeErr
	default:
		return nil
	}
}

// Close implements [io.Closer] for a channel that carries a connection.
func (ch *channel) Close() error {
	ch.stop(transport.ErrClosed, "")
	return nil
}
