// Package sftp is a client of version 3 of the SSH file transfer protocol
// (draft-ietf-secsh-filexfer-02) whose requests need not wait for each other:
// a small file is opened, and then written, read back and closed in one go. A
// server processes the requests about one file in their order (section 4.1 of
// the draft calls it a must), so that costs two round trips in all.
package sftp

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

const (
	// maxPacket is what OpenSSH sends at most (SFTP_MAX_MSG_LENGTH), and what
	// every answer here has room in.
	maxPacket = 256 << 10
	// safeBlock is what every server reads and writes at once; section 3.
	safeBlock = 32 << 10
	// overhead is what a packet is longer than the block in it.
	overhead = 1024
	// maxQueue bounds what is waiting to be sent.
	maxQueue = 1 << 20
)

// A Client speaks to one server. Its methods may be called concurrently.
type Client struct {
	w       io.Writer
	closing func()

	extensions map[string]bool
	maxRead    int
	maxWrite   int

	mu      sync.Mutex
	changed sync.Cond
	queue   packet           // to be sent; guarded by mu
	spare   packet           // the queue's other buffer; guarded by mu
	calls   map[uint32]*Call // sent and not answered; guarded by mu
	last    uint32           // the last id; guarded by mu
	err     error            // why there is nothing more to expect; guarded by mu
	loops   sync.WaitGroup
}

// A Call is a request that has been sent, or soon will be.
type Call struct {
	done chan struct{}
	// into is where data goes that is read.
	into []byte
	// What came, once done is closed.
	kind byte
	body []byte
	n    int
	err  error
}

// New greets the server behind r and w. closing must end both; Close calls it,
// and so do errors and the end of the context during the greeting, more than
// once and concurrently.
func New(ctx context.Context, r io.Reader, w io.Writer, closing func()) (*Client, error) {
	c := &Client{w: w, closing: closing, extensions: map[string]bool{}, maxRead: safeBlock, maxWrite: safeBlock, calls: map[uint32]*Call{}}
	c.changed.L = &c.mu
	stop := context.AfterFunc(ctx, closing)
	in := bufio.NewReaderSize(r, 64<<10)
	err := c.greet(in)
	if !stop() && err != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		closing()
		return nil, err
	}
	c.loops.Go(c.send)
	c.loops.Go(func() { c.receive(in) })
	if c.extensions["limits@openssh.com"] {
		c.limits(ctx)
	}
	return c, nil
}

func (c *Client) greet(in *bufio.Reader) error {
	if _, err := c.w.Write(packet{0, 0, 0, 5, typeInit, 0, 0, 0, 3}); err != nil {
		return fmt.Errorf("sftp: greeting: %w", err)
	}
	var head [5]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return fmt.Errorf("sftp: greeting: %w", err)
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < 5 || n > maxPacket || head[4] != typeVersion {
		return errors.New("sftp: greeting: the server does not speak sftp (does a profile write something?)")
	}
	body := make([]byte, n-1)
	if _, err := io.ReadFull(in, body); err != nil {
		return fmt.Errorf("sftp: greeting: %w", err)
	}
	r := &reader{rest: body}
	if version := r.u32(); version != 3 {
		return fmt.Errorf("sftp: greeting: the server speaks version %d, not 3", version)
	}
	for len(r.rest) > 0 && r.err == nil {
		name := r.str()
		r.str()
		c.extensions[name] = true
	}
	return r.err
}

// limits asks what the server takes in one packet; see PROTOCOL of OpenSSH,
// section 4.8.
func (c *Client) limits(ctx context.Context) {
	call := c.extended("limits@openssh.com", func(p packet) packet { return p })
	if call.wait(ctx, typeReply) != nil {
		return // the safe ones will do
	}
	r := &reader{rest: call.body}
	whole, read, write := r.u64(), r.u64(), r.u64()
	if r.err != nil {
		return
	}
	bound := func(block uint64) int {
		if whole > overhead && (block == 0 || block > whole-overhead) {
			block = whole - overhead
		}
		return int(min(max(block, safeBlock), maxPacket-overhead))
	}
	c.maxRead, c.maxWrite = bound(read), bound(write)
}

// Has reports whether the server has announced an extension.
func (c *Client) Has(extension string) bool { return c.extensions[extension] }

// Blocks returns how much can be read and written at once.
func (c *Client) Blocks() (read, write int) { return c.maxRead, c.maxWrite }

// Close ends the connection and waits for what serves it.
func (c *Client) Close() {
	c.fail(errClosed)
	c.loops.Wait()
}

var errClosed = errors.New("sftp: closed")

// fail ends everything that waits.
func (c *Client) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	calls := c.calls
	c.calls = map[uint32]*Call{}
	c.changed.Broadcast()
	c.mu.Unlock()
	c.closing()
	for _, call := range calls {
		call.err = err
		close(call.done)
	}
}

// call sends a request. fill adds what stands behind its id. It waits only while
// too much is under way.
func (c *Client) call(kind byte, into []byte, fill func(packet) packet) *Call {
	call := &Call{done: make(chan struct{}), into: into}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) > maxQueue && c.err == nil {
		c.changed.Wait()
	}
	if c.err != nil {
		call.err = c.err
		close(call.done)
		return call
	}
	c.last++
	start := len(c.queue)
	c.queue = fill(append(c.queue.u32(0), kind).u32(c.last))
	binary.BigEndian.PutUint32(c.queue[start:], uint32(len(c.queue)-start-4))
	c.calls[c.last] = call
	c.changed.Broadcast()
	return call
}

func (c *Client) extended(name string, fill func(packet) packet) *Call {
	return c.call(typeExtended, nil, func(p packet) packet { return fill(p.str(name)) })
}

// send sends what is queued: all of it at once, so that small requests share a
// packet of the layer below.
func (c *Client) send() {
	for {
		c.mu.Lock()
		for len(c.queue) == 0 && c.err == nil {
			c.changed.Wait()
		}
		if c.err != nil {
			c.mu.Unlock()
			return
		}
		out := c.queue
		c.queue = c.spare[:0]
		c.changed.Broadcast()
		c.mu.Unlock()
		if _, err := c.w.Write(out); err != nil {
			c.fail(fmt.Errorf("sftp: %w", err))
			return
		}
		c.mu.Lock()
		c.spare = out
		c.mu.Unlock()
	}
}

func (c *Client) receive(in *bufio.Reader) {
	for {
		if err := c.answer(in); err != nil {
			if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
				err = errors.New("the server has ended it")
			}
			c.fail(fmt.Errorf("sftp: %w", err))
			return
		}
	}
}

// answer reads one answer and gives it to whoever waits for it.
func (c *Client) answer(in *bufio.Reader) error {
	var head [9]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return err
	}
	n, kind, id := binary.BigEndian.Uint32(head[:]), head[4], binary.BigEndian.Uint32(head[5:])
	if n < 5 || n > maxPacket+overhead {
		return fmt.Errorf("the server sent a packet of %d bytes", n)
	}
	c.mu.Lock()
	call := c.calls[id]
	delete(c.calls, id)
	c.mu.Unlock()
	if call == nil {
		return errors.New("the server answered what nobody asked")
	}
	err := call.take(in, kind, int(n)-5)
	if err != nil {
		call.err = fmt.Errorf("sftp: %w", err)
	}
	close(call.done)
	return err
}

func (call *Call) take(in *bufio.Reader, kind byte, n int) error {
	call.kind = kind
	if kind == typeData && call.into != nil {
		var size [4]byte
		if n < 4 {
			return errShort
		}
		if _, err := io.ReadFull(in, size[:]); err != nil {
			return err
		}
		call.n = int(binary.BigEndian.Uint32(size[:]))
		if call.n > n-4 || call.n > len(call.into) {
			return errors.New("the server sent more than was asked for")
		}
		if _, err := io.ReadFull(in, call.into[:call.n]); err != nil {
			return err
		}
		_, err := in.Discard(n - 4 - call.n)
		return err
	}
	call.body = make([]byte, n)
	_, err := io.ReadFull(in, call.body)
	return err
}

// wait waits for an answer of a kind. With typeStatus it wants one that says
// that all is well.
func (call *Call) wait(ctx context.Context, kind byte) error {
	select {
	case <-call.done:
	default:
		select {
		case <-call.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	switch {
	case call.err != nil:
		return call.err
	case call.kind == typeStatus:
		r := &reader{rest: call.body}
		s := &Status{Code: r.u32()}
		if len(r.rest) > 0 { // some leave the message out
			s.Message = r.str()
		}
		if r.err != nil {
			return r.err
		}
		if s.Code == 0 && kind == typeStatus {
			return nil
		}
		return s
	case call.kind != kind:
		return fmt.Errorf("sftp: the server answers with a packet of type %d", call.kind)
	}
	return nil
}
