package daemon_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
)

func TestNothingToBorrow(t *testing.T) {
	path, _ := serveLoans(t, here(t))
	if _, err := client.Borrow(t.Context(), dialer(path), api.Lend{Key: "db1"}); gateway.Code(err) != "session.not_found" {
		t.Errorf("Borrow for another target = %v, want session.not_found", err)
	}
	if _, err := client.Borrow(t.Context(), dialer(path+"0"), api.Lend{Key: "web1"}); gateway.Code(err) != "daemon.unreachable" {
		t.Errorf("Borrow without a daemon = %v, want daemon.unreachable", err)
	}
}

// TestLoanThatIsMisread: what is asked for a loan is read as every other request.
func TestLoanThatIsMisread(t *testing.T) {
	d, err := daemon.New(daemon.Config{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for body, code := range map[string]string{
		`{"key":"web1"}`:              "session.not_found",
		`{"key":"web1","terminal":1}`: "usage",
		`{"key":"web1"} {}`:           "usage",
		`{"key":"\udce9"}`:            "usage",
	} {
		answer := httptest.NewRecorder()
		d.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/lend", strings.NewReader(body)))
		if !strings.Contains(answer.Body.String(), `"code":"`+code+`"`) {
			t.Errorf("%s is answered %d %s, want %s", body, answer.Code, answer.Body, code)
		}
	}
}

// TestStuckDaemon: a daemon that does not answer does not hold its caller up.
func TestStuckDaemon(t *testing.T) {
	path := socketPath(t)
	l, err := net.Listen("unix", path) // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := client.Borrow(ctx, dialer(path), api.Lend{Key: "web1"}); gateway.Code(err) != "daemon.unreachable" || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Borrow = %v, want daemon.unreachable", err)
	}
}

// TestLinkLost: the loss of the daemon's link is a loss to the borrower.
func TestLinkLost(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	proxy := netsim.Start(t, s.Addr, 0)
	path, _ := serveLoans(t, dialSSH(t, s, proxy.Port()))
	pipe, err := borrow(t, path).Pipe(t.Context(), "echo up; exec cat")
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	read(t, pipe.Stdout, "up\n")
	proxy.Cut(netsim.RST)
	wantLost(t, pipe)
}

// TestLenderCloses: the daemon may close its connection, or itself; the
// borrower has closed nothing.
func TestLenderCloses(t *testing.T) {
	for _, end := range []string{"the connection", "the daemon"} {
		t.Run(end, func(t *testing.T) {
			lent := here(t)
			path, stop := serveLoans(t, lent)
			tr := borrow(t, path)
			pipe, err := tr.Pipe(t.Context(), "echo up; exec cat")
			if err != nil {
				t.Fatal(err)
			}
			defer pipe.Close()
			read(t, pipe.Stdout, "up\n")
			if end == "the daemon" {
				stop()
				wantLost(t, pipe)
				return
			}
			lent.Close()
			eventually(t, "an error of Write", func() bool {
				_, err = pipe.Stdin.Write([]byte("x"))
				return err != nil
			})
			if _, err := tr.Pipe(t.Context(), "true"); !errors.Is(err, transport.ErrUnreachable) {
				t.Errorf("Pipe = %v, want %v", err, transport.ErrUnreachable)
			}
		})
	}
}

// refusing fails to open anything.
type refusing struct {
	transport.Transport
	err error
}

func (r refusing) Terminal(context.Context, string, transport.TerminalOptions) (transport.Terminal, error) {
	return nil, r.err
}

func (r refusing) Pipe(context.Context, string) (*transport.Pipe, error) { return nil, r.err }

// TestRefusal: the error of an opening is the borrower's as it was the
// lender's.
func TestRefusal(t *testing.T) {
	refusal := &transport.Error{Code: "session.pty_refused", Message: "ssh: web1: the server refuses a terminal", Hint: "without -t"}
	path, _ := serveLoans(t, refusing{here(t), refusal})
	tr := borrow(t, path)
	_, err := tr.Terminal(t.Context(), "", transport.TerminalOptions{Interactive: true})
	var got *transport.Error
	if !errors.As(err, &got) || got.Code != refusal.Code || got.Message != refusal.Message || got.Hint != refusal.Hint {
		t.Errorf("Terminal = %#v, want %#v", err, refusal)
	}
	if _, err := tr.Pipe(t.Context(), ""); gateway.Code(err) != refusal.Code {
		t.Errorf("Pipe = %v, want %v", err, refusal)
	}
}

// TestBorrowerThatIsGone: who leaves before the answer is told nothing, and the log has
// nothing of it.
func TestBorrowerThatIsGone(t *testing.T) {
	path := socketPath(t)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := dialer(path)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	given := make(chan struct{})
	var logged strings.Builder
	lend := daemon.Lend(func(api.Lend) (transport.Transport, func(), bool) {
		conn.Close()
		return here(t), func() { close(given) }, true
	}, nil)
	server := &http.Server{Handler: lend, ErrorLog: log.New(&logged, "", 0)}
	defer server.Close()
	go server.Serve(l)
	if _, err := io.WriteString(conn, "POST /v1/lend HTTP/1.1\r\nHost: gateway\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
		t.Fatal(err)
	}
	<-given
	if logged.Len() > 0 {
		t.Errorf("logged: %s", &logged)
	}
}

// TestGiveUpOpening: the end of the context reaches the lender.
func TestGiveUpOpening(t *testing.T) {
	stuck := waiting{Transport: here(t), begun: make(chan struct{}), gaveUp: make(chan struct{})}
	path, _ := serveLoans(t, stuck)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("told to stop")
	go func() {
		<-stuck.begun
		cancel(why)
	}()
	if _, err := borrow(t, path).Pipe(ctx, "true"); !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
		t.Errorf("Pipe = %v, want %v and %v", err, context.Canceled, why)
	}
	<-stuck.gaveUp
}

// waiting opens nothing before the caller gives up.
type waiting struct {
	transport.Transport
	begun, gaveUp chan struct{}
}

func (w waiting) Pipe(ctx context.Context, _ string) (*transport.Pipe, error) {
	close(w.begun)
	<-ctx.Done()
	close(w.gaveUp)
	return nil, ctx.Err()
}

// TestUnreadStdout: it does not hold up stderr, as it would not directly.
func TestUnreadStdout(t *testing.T) {
	path, _ := serveLoans(t, here(t))
	pipe, err := borrow(t, path).Pipe(t.Context(), "head -c 10000000 /dev/zero & echo err >&2; wait")
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	read(t, pipe.Stderr, "err\n")
	if n, err := io.Copy(io.Discard, pipe.Stdout); n != 10_000_000 || err != nil {
		t.Errorf("stdout has %d bytes, %v", n, err)
	}
}

// TestNothingLeft: borrowings leave nothing on either side, whatever they did.
func TestNothingLeft(t *testing.T) {
	path, _ := serveLoans(t, here(t))
	cycle := func(i int) {
		tr, err := client.Borrow(t.Context(), dialer(path), api.Lend{Key: "web1"})
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		switch i % 4 {
		case 0: // nothing
		case 1:
			if _, err := tr.Terminal(t.Context(), "exec cat", transport.TerminalOptions{}); err != nil {
				t.Fatal(err)
			}
		case 2:
			pipe, err := tr.Pipe(t.Context(), "exit 3")
			if err != nil {
				t.Fatal(err)
			}
			if exit, err := pipe.Wait(); exit.Code != 3 || err != nil {
				t.Errorf("Wait = %v, %v", exit, err)
			}
		case 3:
			if _, err := tr.Pipe(t.Context(), "exec yes"); err != nil {
				t.Fatal(err)
			}
		}
	}
	cycle(1)
	eventually(t, "everything given back", func() bool { return loans.Load() == 0 })
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for i := range 200 {
		cycle(i)
	}
	eventually(t, "everything given back", func() bool { return loans.Load() == 0 })
	eventually(t, "no goroutine left", func() bool { return runtime.NumGoroutine() <= goroutines })
	eventually(t, "no descriptor left", func() bool { return openFiles(t) <= files })
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestRoundTrips: a session over a borrowed connection takes no more round
// trips than over one's own. Both are opened in turns: the machine's noise
// meets both, and only ever adds.
func TestRoundTrips(t *testing.T) {
	const delay = 50 * time.Millisecond // each way
	s := sshdtest.Start(t, sshdtest.Options{})
	proxy := netsim.Start(t, s.Addr, 0)
	direct := dialSSH(t, s, proxy.Port())
	path, _ := serveLoans(t, direct)
	lent := borrow(t, path)
	open := func(tr transport.Transport) time.Duration {
		begun := time.Now()
		s, err := session.Open(t.Context(), tr, session.Config{})
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(begun)
		s.Close()
		return took
	}
	open(direct) // the first one is slower: sshd's first channel
	proxy.SetDelay(delay)
	defer proxy.SetDelay(0)
	ours, theirs := time.Hour, time.Minute
	trips := func(d time.Duration) float64 { return float64(d) / float64(2*delay) }
	for tries := 0; tries < 10 && trips(ours) > trips(theirs)+0.3; tries++ {
		ours, theirs = min(ours, open(lent)), min(theirs, open(direct))
	}
	t.Logf("a session: %.2f round trips, %.2f over one's own connection", trips(ours), trips(theirs))
	if trips(ours) > trips(theirs)+0.5 {
		t.Errorf("a session took %.2f round trips, want %.2f", trips(ours), trips(theirs))
	}
}
