package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"

	"gateway/daemon/api"
	"gateway/internal/fdpass"
	"gateway/transport"
)

// A loan implements [transport.Program] for one that the daemon has started.
// The pipes carry its streams. What their ends mean comes over the connection,
// whose own end means that the daemon is gone.
type loan struct {
	*lease
	*transport.Ending
	transport *Transport
	files     []*os.File // this end of its pipes
	ends      []ending   // of them

	closed    chan struct{}
	closeOnce sync.Once

	mu sync.Mutex // one line at a time
}

// An ending is an end that is told once.
type ending struct {
	once sync.Once
	told chan struct{} // closed once err is set
	err  error
}

func (e *ending) tell(err error) {
	e.once.Do(func() {
		e.err = err
		close(e.told)
	})
}

// newLoan makes the pipes of a program. passed are the ends for the daemon, and
// the caller's to close.
func newLoan(t *Transport, l *lease, pipes int) (made *loan, passed []*os.File, err error) {
	made = &loan{lease: l, Ending: transport.NewEnding(), transport: t, ends: make([]ending, pipes), closed: make(chan struct{})}
	for i := range pipes {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(made.files)
			closeAll(passed)
			return nil, nil, err
		}
		if i == api.LendIn {
			r, w = w, r
		}
		made.files, passed = append(made.files, r), append(passed, w)
		made.ends[i].told = make(chan struct{})
	}
	return made, passed, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// start hands the pipes over, asks for the program and waits for the answer.
func (l *loan) start(borrow api.Borrow, passed []*os.File) error {
	err := fdpass.Send(l.conn, passed...)
	if err == nil {
		err = json.NewEncoder(l.conn).Encode(borrow)
	}
	if err != nil {
		return unreachable(err) // a line that is not whole starts nothing
	}
	var answer api.LendEvent
	switch err := l.lines.Decode(&answer); {
	case err != nil:
		return lost(err)
	case answer.Failed != nil:
		err := answer.Failed.Err()
		if errors.Is(err, transport.ErrClosed) {
			return notOpen(err)
		}
		return err
	case !answer.Opened:
		return lost(errors.New("it speaks another language"))
	}
	return nil
}

// follow hears what the daemon tells, to its end.
func (l *loan) follow() {
	for {
		var e api.LendEvent
		if err := l.lines.Decode(&e); err != nil {
			l.over(lost(err))
			return
		}
		switch {
		case e.End != nil && e.End.Stream >= 0 && e.End.Stream < len(l.ends):
			l.ends[e.End.Stream].tell(held(e.End.Error))
		case e.Exit != nil:
			l.Finish(transport.Exit{Code: e.Exit.Code, Signal: e.Exit.Signal}, held(e.Exit.Error))
		case e.Ending:
			l.transport.endingOnce.Do(func() { close(l.transport.ending) })
		}
	}
}

// held returns an error that the daemon tells. That the daemon has closed the
// connection is a loss on this side, which has not.
func held(e *api.LendError) error {
	err := e.Err()
	if errors.Is(err, transport.ErrClosed) {
		return lost(err)
	}
	return err
}

// over ends what has not ended.
func (l *loan) over(err error) {
	for i := range l.ends {
		l.ends[i].tell(err)
	}
	l.Finish(transport.Exit{}, err)
}

// Close implements [transport.Program]. The daemon hangs the program up when it
// sees the connection's end.
func (l *loan) Close() error {
	l.closeOnce.Do(func() {
		close(l.closed)
		l.over(errClosed)
		l.conn.Close()
		closeAll(l.files)
		l.transport.forget(l)
	})
	return nil
}

// A lentStream is one of a program's, in this direction or that.
type lentStream struct {
	loan *loan
	n    int
}

func (s lentStream) Read(b []byte) (int, error) {
	n, err := s.loan.files[s.n].Read(b)
	if err != nil {
		err = cmp.Or(s.end(err), io.EOF)
	}
	return n, err
}

func (s lentStream) Write(b []byte) (int, error) {
	n, err := s.loan.files[s.n].Write(b)
	if err != nil {
		err = cmp.Or(s.end(err), io.ErrClosedPipe)
	}
	return n, err
}

// Close ends the program's input.
func (s lentStream) Close() error {
	if err := s.loan.files[s.n].Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// end says why a pipe has ended. The daemon tells before it lets go of its
// end, or has died: either comes.
func (s lentStream) end(err error) error {
	switch {
	case closed(s.loan.closed):
		return errClosed
	case errors.Is(err, os.ErrClosed):
		return io.ErrClosedPipe // by Close of this stream alone
	}
	<-s.loan.ends[s.n].told // Close tells too
	return s.loan.ends[s.n].err
}

// terminal implements [transport.Terminal].
type terminal struct{ *loan }

func (t terminal) Read(b []byte) (int, error)  { return lentStream{t.loan, api.LendOut}.Read(b) }
func (t terminal) Write(b []byte) (int, error) { return lentStream{t.loan, api.LendIn}.Write(b) }

// Resize implements [transport.Terminal]. It does not wait for the far side.
func (t terminal) Resize(size transport.Size) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := json.NewEncoder(t.conn).Encode(api.Resize{Resize: api.Size(size)})
	switch {
	case err == nil:
		return nil
	case closed(t.closed):
		return errClosed
	}
	return lost(err)
}
