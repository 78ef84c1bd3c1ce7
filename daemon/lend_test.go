package daemon_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/internal/sshdtest"
	"gateway/transport"
	"gateway/transport/local"
	"gateway/transport/ssh"
	"gateway/transport/transporttest"
)

func TestMain(m *testing.M) {
	if playRole() {
		return
	}
	os.Exit(m.Run())
}

// loans counts those that have not been given back.
var loans atomic.Int32

// lender serves a transport under the key "web1" until ctx ends.
func lender(ctx context.Context, t transport.Transport) *http.Server {
	routes := http.NewServeMux()
	routes.Handle("POST /v1/lend", daemon.Lend(func(asked api.Lend) (transport.Transport, func(), bool) {
		if asked.Key != "web1" {
			return nil, nil, false
		}
		loans.Add(1)
		return t, func() { loans.Add(-1) }, true
	}, nil))
	return &http.Server{Handler: routes, BaseContext: func(net.Listener) context.Context { return ctx }}
}

// serveLoans lends t on a socket whose path it returns, until the test ends or
// stop is called.
func serveLoans(tb testing.TB, t transport.Transport) (path string, stop func()) {
	tb.Helper()
	path = socketPath(tb)
	l, err := net.Listen("unix", path)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := lender(ctx, t)
	done := make(chan struct{})
	go func() { // ends with the server
		defer close(done)
		server.Serve(l)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		server.Close()
		<-done
	})
	tb.Cleanup(stop)
	return path, stop
}

func socketPath(tb testing.TB) string { return filepath.Join(sshdtest.ShortDir(tb), "s") }

// dialer reaches a socket.
func dialer(path string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
}

func borrow(tb testing.TB, path string) *client.Transport {
	tb.Helper()
	t, err := client.Borrow(tb.Context(), dialer(path), api.Lend{Key: "web1"})
	if err != nil {
		tb.Fatalf("Borrow = %v", err)
	}
	tb.Cleanup(func() { t.Close() })
	return t
}

func dialSSH(tb testing.TB, s *sshdtest.Server, port int) *ssh.Transport {
	tb.Helper()
	t, err := ssh.Dial(tb.Context(), ssh.Config{
		Name: "web1", Addr: s.Host, Port: port, User: s.User,
		Identities: []ssh.Identity{{Path: s.KeyFile}},
		HostKeys:   &ssh.HostKeys{Name: "web1", Addr: s.Host, Port: s.Port, Files: []string{s.KnownHosts}},
	})
	if err != nil {
		tb.Fatalf("Dial = %v", err)
	}
	tb.Cleanup(func() { t.Close() })
	return t
}

// here is the transport for this machine.
func here(tb testing.TB) transport.Transport {
	tb.Helper()
	t := local.New(local.Config{})
	tb.Cleanup(func() { t.Close() })
	return t
}

func TestContractOfLentLocal(t *testing.T) {
	path, _ := serveLoans(t, here(t))
	transporttest.Run(t, func(t testing.TB) transport.Transport { return borrow(t, path) })
}

func TestContractOfLentSSH(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	direct := dialSSH(t, s, s.Port)
	path, _ := serveLoans(t, direct)
	if got, want := borrow(t, path).Account(), direct.Account(); got != want || want == "" {
		t.Errorf("Account = %q, want %q", got, want)
	}
	transporttest.Run(t, func(t testing.TB) transport.Transport { return borrow(t, path) })
}
