package integration

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
)

// lent returns tr as another process would borrow it from the daemon.
func lent(t testing.TB, tr transport.Transport) transport.Transport {
	t.Helper()
	dir, err := os.MkdirTemp("", "lent") // a socket needs a path shorter than that of TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := &http.Server{
		Handler: daemon.Lend(func(api.Lend) (transport.Transport, func(), bool) {
			return tr, func() {}, true
		}),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
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
	borrowed, err := client.Borrow(t.Context(), func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", l.Addr().String())
	}, api.Lend{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { borrowed.Close() })
	return borrowed
}

// BenchmarkLent compares a borrowed connection with one's own, in turns: the
// machine's noise meets both.
func BenchmarkLent(b *testing.B) {
	server := sshdtest.Start(b, sshdtest.Options{})
	direct := dial(b, server, server.Port)
	both := []transport.Transport{direct, lent(b, direct)}
	measure := func(b *testing.B, what func(i int)) {
		var took [2][]time.Duration
		for b.Loop() {
			for i := range both {
				begun := time.Now()
				what(i)
				took[i] = append(took[i], time.Since(begun))
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
	b.Run("open", func(b *testing.B) {
		measure(b, func(i int) {
			s := open(b, i)
			b.Cleanup(func() { s.Close() })
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
			measure(b, func(i int) {
				if _, err := sessions[i].Run(b.Context(), command); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}
