package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/internal/fdpass"
	"gateway/transport"
)

// Lend answers [api.Lend]: it starts a program for another process of the user
// on a connection that is open, and carries its streams. find returns that
// connection, if it is open, and what gives it back. The request lasts until
// the borrower is gone, or its context. Once ending is closed, borrowers are told:
// one that has nothing to do may go.
func Lend(find func(api.Lend) (t transport.Transport, release func(), ok bool), ending <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request api.Lend
		if err := readBody(w, r, &request); err != nil {
			refuse(w, http.StatusBadRequest, err)
			return
		}
		t, release, ok := find(request)
		if !ok {
			refuse(w, http.StatusNotFound, &transport.Error{Code: "session.not_found", Message: "daemon: no connection is open to this target"})
			return
		}
		defer release()
		if remote, ok := t.(transport.Remote); ok {
			w.Header().Set(api.AccountHeader, url.PathEscape(remote.Account()))
		}
		conn := switchToLending(w)
		if conn == nil {
			panic(http.ErrAbortHandler) // HTTP answers nobody any more
		}
		if all, ok := t.(interface{ Whole() transport.Transport }); ok {
			// A few sessions of the daemon fill a connection, and a borrower that
			// had to wait for another one would do better with its own.
			t = all.Whole()
		}
		lend(r.Context(), conn, t, ending)
	})
}

// switchToLending takes the connection over from HTTP. It returns nil if the borrower is
// gone, or no descriptors can come over the connection.
func switchToLending(w http.ResponseWriter) *net.UnixConn {
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", api.LendProtocol)
	hijacked, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil
	}
	conn, ok := hijacked.(*net.UnixConn)
	if !ok || buffered.Reader.Buffered() > 0 { // descriptors don't come through a buffer
		hijacked.Close()
		return nil
	}
	err = conn.SetDeadline(time.Time{})
	if err == nil {
		fmt.Fprintf(buffered, "HTTP/1.1 %d %s\r\n", http.StatusSwitchingProtocols, http.StatusText(http.StatusSwitchingProtocols))
		_ = w.Header().Write(buffered) // Flush tells
		fmt.Fprint(buffered, "\r\n")
		err = buffered.Flush()
	}
	if err != nil {
		conn.Close()
		return nil
	}
	return conn
}

// A loan is one program that was started for a borrower. Its goroutines end
// with the context of lend.
type loan struct {
	program transport.Program
	files   []*os.File // the borrower's pipes

	mu    sync.Mutex
	lines *json.Encoder // guarded by mu
}

// lend serves one borrower, until the other end of conn is closed or ctx ends.
func lend(ctx context.Context, conn *net.UnixConn, t transport.Transport, ending <-chan struct{}) {
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	context.AfterFunc(ctx, func() { conn.Close() })
	files, err := fdpass.Receive(conn)
	if errors.Is(err, io.EOF) {
		return // it did not need a program
	}
	l := &loan{files: files, lines: json.NewEncoder(conn)}
	defer l.closeFiles()
	var borrow api.Borrow
	lines := json.NewDecoder(conn)
	if err == nil {
		err = lines.Decode(&borrow)
	}
	if err != nil {
		// Nothing has run: a connection of the borrower's own may do better.
		l.tell(api.LendEvent{Failed: api.NewLendError(&transport.Error{
			Code: "daemon.unreachable", Message: fmt.Sprintf("daemon: lend: %v", err), Err: err,
			Hint: "it may have no descriptors left (ulimit -n): close some of its sessions",
		})})
		return
	}
	sizes := make(chan transport.Size, 1)
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		watchBorrower(lines, sizes)
		gone()
	})
	in, outs, err := l.start(ctx, t, borrow)
	if err != nil {
		l.tell(api.LendEvent{Failed: api.NewLendError(err)})
		gone()
		return
	}
	l.tell(api.LendEvent{Opened: true})
	all.Go(func() { l.feed(in) })
	var ended sync.WaitGroup
	for i, out := range outs {
		ended.Go(func() { l.drain(api.LendOut+i, out) })
	}
	ended.Go(l.wait)
	all.Go(func() {
		ended.Wait()
		_, err := l.program.Wait()
		l.end(api.LendIn, cmp.Or(err, io.ErrClosedPipe)) // nobody is left to read what is typed
	})
	if terminal, ok := l.program.(transport.Terminal); ok {
		all.Go(func() { resize(ctx, terminal, sizes) })
	}
	select {
	case <-ending:
		l.tell(api.LendEvent{Ending: true})
	case <-ctx.Done():
	}
	<-ctx.Done()
	conn.Close() // before a hang-up of ours can be told as the program's end
	l.program.Close()
	l.closeFiles()
}

// watchBorrower reads what the borrower says, to its end. Only the last size
// counts: a link that is stalled must not hide that the borrower is gone.
func watchBorrower(lines *json.Decoder, sizes chan transport.Size) {
	for {
		var line api.Resize
		if lines.Decode(&line) != nil {
			return
		}
		select {
		case <-sizes:
		default:
		}
		sizes <- transport.Size(line.Resize)
	}
}

func resize(ctx context.Context, terminal transport.Terminal, sizes <-chan transport.Size) {
	for {
		select {
		case size := <-sizes:
			_ = terminal.Resize(size) // as over any link: a terminal that is gone says so elsewhere
		case <-ctx.Done():
			return
		}
	}
}

// start starts the program, and returns where its input goes and where its
// outputs come from.
func (l *loan) start(ctx context.Context, t transport.Transport, borrow api.Borrow) (in io.WriteCloser, outs []io.Reader, err error) {
	ctx = transport.Together(ctx, borrow.Group)
	want := 3
	if borrow.Terminal != nil {
		want = 2
	}
	if len(l.files) != want {
		return nil, nil, usage("", "lend: %d pipes came, want %d", len(l.files), want)
	}
	if borrow.Terminal == nil {
		pipe, err := openPipe(ctx, t, borrow)
		if err != nil {
			return nil, nil, err
		}
		l.program = pipe
		return pipe.Stdin, []io.Reader{pipe.Stdout, pipe.Stderr}, nil
	}
	terminal, err := t.Terminal(ctx, string(borrow.Command), transport.TerminalOptions{
		Size: transport.Size(borrow.Terminal.Size), Term: borrow.Terminal.Term, Interactive: borrow.Terminal.Interactive,
	})
	if err != nil {
		return nil, nil, err
	}
	l.program = terminal
	return keyboard{terminal}, []io.Reader{terminal}, nil
}

func openPipe(ctx context.Context, t transport.Transport, borrow api.Borrow) (*transport.Pipe, error) {
	if borrow.Subsystem == "" {
		return t.Pipe(ctx, string(borrow.Command))
	}
	return gateway.Subsystem(ctx, t, borrow.Subsystem)
}

// keyboard is a terminal's input, whose end is the terminal's end only.
type keyboard struct{ io.Writer }

func (keyboard) Close() error { return nil }

// feed gives the program what the borrower writes.
func (l *loan) feed(in io.WriteCloser) {
	_, err := io.Copy(in, l.files[api.LendIn])
	if err == nil {
		err = in.Close()
	}
	l.end(api.LendIn, err)
}

// drain gives the borrower what the program writes. A borrower that stops
// reading stops it here, and with it the program.
func (l *loan) drain(stream int, out io.Reader) {
	_, err := io.Copy(l.files[stream], out)
	l.end(stream, err)
}

// end says how a stream ended, and then ends it.
func (l *loan) end(stream int, err error) {
	l.tell(api.LendEvent{End: &api.LendEnd{Stream: stream, Error: api.NewLendError(err)}})
	l.files[stream].Close()
}

// wait says how the program ended.
func (l *loan) wait() {
	exit, err := l.program.Wait()
	l.tell(api.LendEvent{Exit: &api.LendExit{Code: exit.Code, Signal: exit.Signal, Error: api.NewLendError(err)}})
}

// tell sends a line. A borrower that is gone does not hear it.
func (l *loan) tell(e api.LendEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.lines.Encode(e)
}

func (l *loan) closeFiles() {
	for _, f := range l.files {
		f.Close()
	}
}
