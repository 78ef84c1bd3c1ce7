package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"gateway/daemon/api"
	"gateway/transport"
)

// Transport implements [transport.Remote] over a connection that the daemon has
// open. Its programs are this process's: they end with it.
type Transport struct {
	dial    func(context.Context) (net.Conn, error)
	asking  api.Lend
	account string

	ending     chan struct{} // closed by the first loan that hears of it
	endingOnce sync.Once

	mu     sync.Mutex // guards what follows
	closed bool
	spare  *lease // has not carried a program yet
	loans  map[*loan]bool
}

var _ transport.Remote = (*Transport)(nil)

// Borrow returns a transport over the connection that the daemon behind dial
// has open for what asking describes. The error's code is session.not_found if
// it has none, and daemon.version or daemon.unreachable if nobody knows.
func Borrow(ctx context.Context, dial func(context.Context) (net.Conn, error), asking api.Lend) (*Transport, error) {
	t := &Transport{dial: dial, asking: asking, loans: map[*loan]bool{}, ending: make(chan struct{})}
	var err error
	t.spare, err = t.lease(ctx)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled): // which says nothing about the daemon
		return nil, fmt.Errorf("client: borrow a connection: %w", transport.Cause(ctx))
	case err != nil:
		return nil, err
	}
	t.account = t.spare.account
	return t, nil
}

// Account implements [transport.Remote]. It is empty for a connection that is
// not remote.
func (t *Transport) Account() string { return t.account }

// Ending is closed once the daemon, which is about to end, waits for the programs that run:
// who has nothing to do with them at the moment had better close them.
func (t *Transport) Ending() <-chan struct{} { return t.ending }

// Close implements [transport.Transport].
func (t *Transport) Close() error {
	t.mu.Lock()
	t.closed = true
	spare, loans := t.spare, t.loans
	t.spare, t.loans = nil, nil
	t.mu.Unlock()
	if spare != nil {
		spare.conn.Close()
	}
	for l := range loans {
		l.Close()
	}
	return nil
}

// Pipe implements [transport.Transport].
func (t *Transport) Pipe(ctx context.Context, command string) (*transport.Pipe, error) {
	return t.pipe(ctx, api.Borrow{Command: []byte(command)})
}

// Subsystem starts a subsystem such as sftp. The error's code is
// file.no_subsystem where there is none.
func (t *Transport) Subsystem(ctx context.Context, name string) (*transport.Pipe, error) {
	return t.pipe(ctx, api.Borrow{Subsystem: name})
}

func (t *Transport) pipe(ctx context.Context, borrow api.Borrow) (*transport.Pipe, error) {
	l, err := t.open(ctx, borrow, 3)
	if err != nil {
		return nil, err
	}
	return &transport.Pipe{
		Stdin: lentStream{l, api.LendIn}, Stdout: lentStream{l, api.LendOut}, Stderr: lentStream{l, api.LendErr},
		Program: l,
	}, nil
}

// Terminal implements [transport.Transport].
func (t *Transport) Terminal(ctx context.Context, command string, options transport.TerminalOptions) (transport.Terminal, error) {
	l, err := t.open(ctx, api.Borrow{Command: []byte(command), Terminal: &api.BorrowTerminal{
		Size: api.Size(options.Size), Term: options.Term, Interactive: options.Interactive,
	}}, 2)
	if err != nil {
		return nil, err
	}
	return terminal{l}, nil
}

// open has the daemon start a program.
func (t *Transport) open(ctx context.Context, borrow api.Borrow, pipes int) (*loan, error) {
	if ctx.Err() != nil {
		return nil, gaveUp(ctx)
	}
	borrow.Group = transport.Group(ctx)
	lease, err := t.take(ctx)
	if err != nil {
		return nil, err
	}
	l, passed, err := newLoan(t, lease, pipes)
	if err != nil {
		lease.conn.Close()
		return nil, &transport.Error{Code: "session.limit", Message: fmt.Sprintf("client: pipes for a program: %v", err), Err: err}
	}
	defer closeAll(passed)
	if !t.keep(l) {
		l.Close()
		return nil, errClosed
	}
	stop := context.AfterFunc(ctx, func() { l.conn.Close() })
	err = l.start(borrow, passed)
	if !stop() {
		err = gaveUp(ctx)
	}
	if err != nil {
		if t.isClosed() {
			err = errClosed
		}
		l.Close()
		return nil, err
	}
	go l.follow() // ends with the loan
	return l, nil
}

// keep notes what Close has to close, unless it was called.
func (t *Transport) keep(l *loan) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.loans[l] = true
	return true
}

func (t *Transport) forget(l *loan) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.loans, l)
}

func (t *Transport) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// take returns the spare lease, or a new one.
func (t *Transport) take(ctx context.Context) (*lease, error) {
	t.mu.Lock()
	closed, spare := t.closed, t.spare
	t.spare = nil
	t.mu.Unlock()
	switch {
	case closed:
		return nil, errClosed
	case spare != nil:
		return spare, nil
	}
	l, err := t.lease(ctx)
	switch {
	case err == nil:
		return l, nil
	case ctx.Err() != nil:
		return nil, gaveUp(ctx)
	}
	return nil, notOpen(err)
}

// notOpen is the error of an opening on a connection that was there a moment
// ago. As with one's own, nothing ran.
func notOpen(err error) error {
	return &transport.Error{Code: "ssh.closed", Message: fmt.Sprintf("client: the connection of the daemon is no longer open: %v", err), Err: err}
}

// errClosed is what a Transport's owner gets after closing it.
var errClosed = fmt.Errorf("client: the borrowed connection: %w", transport.ErrClosed)

// gaveUp is the error of an opening whose context ended.
func gaveUp(ctx context.Context) error {
	return fmt.Errorf("client: start a program: %w", transport.Cause(ctx))
}

// lost is the error of a program whose daemon is gone, or whose connection the
// daemon has given up.
func lost(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it is gone")
	}
	return &transport.Error{Code: "link.lost", Message: fmt.Sprintf("client: link lost with the daemon that held it: %v", err), Hint: "what was running there may still run", Err: err}
}
