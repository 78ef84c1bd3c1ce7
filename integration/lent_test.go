package integration

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/hosts"
	"gateway/internal/netsim"
	"gateway/internal/socket"
	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
)

// lent returns tr as another process would borrow it from the daemon.
func lent(t testing.TB, tr transport.Transport) transport.Transport {
	t.Helper()
	path := serveSocket(t, daemon.Lend(func(api.Lend) (transport.Transport, func(), bool) { return tr, func() {}, true }, nil))
	borrowed, err := client.Borrow(t.Context(), func(ctx context.Context) (net.Conn, error) { return socket.Dial(ctx, path) }, api.Lend{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { borrowed.Close() })
	return borrowed
}

// serveSocket answers in a daemon's place, and returns where.
func serveSocket(t testing.TB, handler http.Handler) (path string) {
	t.Helper()
	path = filepath.Join(sshdtest.ShortDir(t), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := &http.Server{Handler: handler, BaseContext: func(net.Listener) context.Context { return ctx }}
	done := make(chan struct{})
	go func() { // ends with the server
		defer close(done)
		server.Serve(l)
	}()
	t.Cleanup(func() {
		cancel()
		server.Close()
		<-done
	})
	return path
}

// TestExecBorrows: exec works the same over the daemon's connection and without
// one.
func TestExecBorrows(t *testing.T) {
	t.Parallel()
	server := sshdtest.Start(t, sshdtest.Options{})
	proxy := netsim.Start(t, server.Addr, 0)
	open := dial(t, server, server.Port)
	asked := make(chan api.Lend, 10)
	lend := func(found bool) http.Handler {
		return daemon.Lend(func(l api.Lend) (transport.Transport, func(), bool) {
			asked <- l
			return open, func() {}, found
		}, nil)
	}
	newer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUpgradeRequired)
		io.WriteString(w, `{"error": {"code": "daemon.version", "message": "daemon: it speaks protocol 99", "hint": "end it"}}`)
	})
	u := newUser(t, "hosts:\n  web1: "+entryAt(server, proxy.Port())+"\n")
	base := u.env
	for _, test := range []struct {
		name    string
		handler http.Handler
		args    []string
		stderr  string
		asks    int
		dials   bool
	}{
		{name: "a connection is open", handler: lend(true), asks: 3}, // a terminal, a keeper, a feeder
		{name: "none is", handler: lend(false), asks: 1, dials: true},
		{name: "not wanted", handler: lend(true), args: []string{"--no-daemon"}, dials: true},
		{name: "another version", handler: newer, stderr: "gateway: warning: daemon: it speaks protocol 99: not using its connections (end it)\n", dials: true},
		{name: "something else", handler: http.NotFoundHandler(), dials: true},
		{name: "no daemon", dials: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			u.env = append(slices.Clone(base), "GATEWAY_SOCKET="+filepath.Join(t.TempDir(), "none"))
			if test.handler != nil {
				u.env = append(slices.Clone(base), "GATEWAY_SOCKET="+serveSocket(t, test.handler))
			}
			before := proxy.Bytes(netsim.Up)
			args := append([]string{"exec", "-i"}, test.args...)
			u.feed(t, "in\n", append(args, "web1", "--", "cat; echo err >&2; exit 3")...).want(t, 3, "in\n", test.stderr+"err\n")
			if dialled := proxy.Bytes(netsim.Up) > before; dialled != test.dials {
				t.Errorf("it made a connection of its own: %v, want %v", dialled, test.dials)
			}
			if len(asked) != test.asks {
				t.Errorf("it asked %d times, want %d", len(asked), test.asks)
			}
			for len(asked) > 0 {
				if l := <-asked; l.Key == "" || l.Interactive {
					t.Errorf("it asked for %+v", l)
				}
			}
		})
	}
}

// BenchmarkLent compares a borrowed connection with one's own, in turns: the
// machine's noise meets both.
func BenchmarkLent(b *testing.B) {
	server := sshdtest.Start(b, sshdtest.Options{})
	direct := dial(b, server, server.Port)
	both := []transport.Transport{direct, lent(b, direct)}
	measure := func(b *testing.B, what func(i int) (after func())) {
		var took [2][]time.Duration
		for b.Loop() {
			for i := range both {
				begun := time.Now()
				after := what(i)
				took[i] = append(took[i], time.Since(begun))
				after()
			}
		}
		b.ReportMetric(median(took[0]), "direct-µs")
		b.ReportMetric(median(took[1]), "lent-µs")
		b.ReportMetric(0, "ns/op")
	}
	open := func(b *testing.B, i int) *session.Session {
		s, err := session.Open(b.Context(), both[i], session.Config{})
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	b.Run("nobody", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "gateway", "s")
		for b.Loop() {
			if _, err := client.Borrow(b.Context(), func(ctx context.Context) (net.Conn, error) { return socket.Dial(ctx, path) }, api.Lend{}); !socket.Absent(err) {
				b.Fatal(err)
			}
		}
	})
	b.Run("open", func(b *testing.B) {
		measure(b, func(i int) func() {
			s := open(b, i)
			return func() { s.Close() }
		})
	})
	for name, command := range map[string]session.Command{
		"builtin": {Text: "true"},
		"program": {Text: "/bin/true"},
		"output":  {Text: "head -c 67108864 /dev/zero", Limit: 1 << 10},
	} {
		b.Run(name, func(b *testing.B) {
			sessions := []*session.Session{open(b, 0), open(b, 1)}
			defer sessions[0].Close()
			defer sessions[1].Close()
			measure(b, func(i int) func() {
				if _, err := sessions[i].Run(b.Context(), command); err != nil {
					b.Fatal(err)
				}
				return func() {}
			})
		})
	}
}

// A keptHost is web1 with a daemon that has a session there.
type keptHost struct {
	*house
	proxy   *netsim.Proxy // in front of it
	daemon  *exec.Cmd
	client  *client.Client
	session api.Session
}

func keepHost(t *testing.T) keptHost {
	t.Helper()
	server := sshdtest.Start(t, sshdtest.Options{})
	proxy := netsim.Start(t, server.Addr, 0)
	inventory := "hosts:\n  web1: " + entryAt(server, proxy.Port()) + "\n"
	h := newHouse(t)
	h.write(t, ".config/gateway/hosts.yaml", inventory)
	serve := h.serve(t)
	c := client.At(h.socket, "")
	t.Cleanup(func() {
		c.Release()
		serve.Process.Signal(syscall.SIGTERM)
		serve.Wait()
	})
	inv, err := hosts.Parse("hosts.yaml", []byte(inventory))
	if err != nil {
		t.Fatal(err)
	}
	g := gateway.New(gateway.Config{Inventory: inv})
	defer g.Close()
	s, err := c.OpenHost(t.Context(), g, "web1", "", api.Open{})
	if err != nil {
		t.Fatal(err)
	}
	return keptHost{h, proxy, serve, c, s}
}

// TestExecBesideASession: exec uses the connection of a session that the daemon
// keeps, and leaves it there.
func TestExecBesideASession(t *testing.T) {
	h := keepHost(t)
	dialled := h.proxy.Conns()
	warm := h.gateway(t, "exec", "web1", "--", "echo hi")
	warm.want(t, 0, "hi\n", "")
	if n := h.proxy.Conns() - dialled; n != 0 {
		t.Errorf("exec made %d connections of its own", n)
	}
	cold := h.gateway(t, "exec", "--no-daemon", "web1", "--", "echo hi")
	cold.want(t, 0, "hi\n", "")
	t.Logf("cold %v, warm %v", cold.took, warm.took)
	if _, err := h.client.Close(t.Context(), h.session.ID); err != nil {
		t.Error(err)
	}
}

// TestDaemonEndsBehindExec: a daemon that is told to end lets a borrower's
// command end first.
func TestDaemonEndsBehindExec(t *testing.T) {
	t.Parallel()
	h := keepHost(t)
	cmd := h.command(t, "exec", "-i", "web1", "--", "echo up; cat; exit 3")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	must(t, cmd.Start())
	lines := bufio.NewReader(out)
	says := func(want string) {
		t.Helper()
		if line, err := lines.ReadString('\n'); line != want {
			t.Fatalf("read %q, %v, want %q", line, err, want)
		}
	}
	says("up\n")
	told := make(chan string, 10)
	go func() { // ends with the daemon
		defer close(told)
		_ = h.client.Events(t.Context(), 0, func(e api.Event) error {
			told <- e.Event
			return nil
		})
	}()
	hears := func(want string) {
		for e := range told {
			if e == want {
				return
			}
		}
		t.Fatalf("no event %s", want)
	}
	hears("opened")
	send(t, h.daemon, syscall.SIGTERM)
	hears("closed")
	for begun := time.Now(); time.Since(begun) < 2*time.Second; { // the connection would be closed next
		io.WriteString(in, "on\n")
		says("on\n")
	}
	in.Close()
	_ = cmd.Wait() // the status says it
	if got := cmd.ProcessState.ExitCode(); got != 3 {
		t.Errorf("status %d, want 3", got)
	}
	if err := h.daemon.Wait(); err != nil {
		t.Errorf("the daemon: %v", err)
	}
}
