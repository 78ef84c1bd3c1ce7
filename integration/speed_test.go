package integration

import (
	"bytes"
	"context"
	"io"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/hosts"
	"gateway/internal/netsim"
	"gateway/internal/socket"
	"gateway/internal/sshdtest"
	"gateway/mcpserver"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// floor is the least that a command on a live shell costs: a bare loop that
// types it with a printf behind it, and reads until the printf's output.
type floor struct {
	terminal transport.Terminal
	buffer   []byte
	n        int
}

func openFloor(b *testing.B, tr transport.Transport, shell string) *floor {
	b.Helper()
	options := map[string]string{"bash": " --norc --noediting", "zsh": " -f +Z +o prompt_sp +o prompt_cr"}[shell]
	terminal, err := tr.Terminal(b.Context(), "unset ENV; PS1= PS2= exec "+shell+options+" -i", transport.TerminalOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { terminal.Close() })
	f := &floor{terminal: terminal, buffer: make([]byte, 4096)}
	f.run(b, "PS1=; PROMPT=; PS2=")
	return f
}

func (f *floor) run(b *testing.B, command string) {
	f.n++
	mark := "MARK" + strconv.Itoa(f.n) + ";"
	if _, err := io.WriteString(f.terminal, command+"; printf 'MARK%s;' "+strconv.Itoa(f.n)+"\n"); err != nil {
		b.Fatal(err)
	}
	for have := 0; ; {
		n, err := f.terminal.Read(f.buffer[have:])
		if have += n; bytes.Contains(f.buffer[:have], []byte(mark)) {
			return
		}
		if err != nil || have == len(f.buffer) {
			b.Fatalf("read: %v after %q", err, f.buffer[:have])
		}
	}
}

// BenchmarkCommand compares a warm command with the floor, in turns: the
// machine's noise meets both. A builtin is to cost at most 80 µs more locally
// and 1.35 times as much over SSH, a program 1.2 times.
func BenchmarkCommand(b *testing.B) {
	for _, machine := range machines(b, b.TempDir()) {
		if !machine.tty {
			continue
		}
		for _, shell := range shells {
			for name, text := range map[string]string{"builtin": "true", "program": "/bin/true"} {
				b.Run(machine.name+"/"+shell+"/"+name, func(b *testing.B) {
					tr := machine.open(b)
					bare := openFloor(b, tr, shell)
					s := open(b, tr, session.Config{Shell: shell})
					var floors, ours []time.Duration
					for b.Loop() {
						begun := time.Now()
						bare.run(b, text)
						floors = append(floors, time.Since(begun))
						begun = time.Now()
						if _, err := s.Run(context.Background(), session.Command{Text: text}); err != nil {
							b.Fatal(err)
						}
						ours = append(ours, time.Since(begun))
					}
					low, high := median(floors), median(ours)
					b.ReportMetric(low, "floor-µs")
					b.ReportMetric(high, "ours-µs")
					b.ReportMetric(high-low, "more-µs")
					b.ReportMetric(high/low, "ratio")
					b.ReportMetric(0, "ns/op")
				})
			}
		}
	}
}

// median returns the median in microseconds.
func median(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2].Nanoseconds()) / 1000
}

// TestRoundTrips counts in round trips what a clock alone would blur: through a
// link that delays, a command costs one, a session on a warm connection is
// ready within two and a half, and its end costs one.
func TestRoundTrips(t *testing.T) {
	const delay = 200 * time.Millisecond // each way
	server := sshdtest.Start(t, sshdtest.Options{})
	proxy := netsim.Start(t, server.Addr, 0)
	tr := dial(t, server, proxy.Port())
	warm := open(t, tr, session.Config{}) // the first one is slower: sshd's first channel
	proxy.SetDelay(delay)
	defer proxy.SetDelay(0)

	trips := func(f func()) float64 { return fewestTrips(2*delay, f) }
	var open []*session.Session
	if got := trips(func() {
		s, err := session.Open(t.Context(), tr, session.Config{})
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, s)
	}); got > 2.5 {
		t.Errorf("a session took %.2f round trips, want at most 2.5", got)
	} else {
		t.Logf("a session: %.2f round trips", got)
	}
	if got := trips(func() {
		if _, err := warm.Run(t.Context(), session.Command{Text: "echo hi"}); err != nil {
			t.Fatal(err)
		}
	}); got > 1.3 {
		t.Errorf("a command took %.2f round trips, want 1", got)
	} else {
		t.Logf("a command: %.2f round trips", got)
	}
	if got := trips(func() {
		open[0].Close()
		open = open[1:]
	}); got > 1.5 {
		t.Errorf("the end of a session took %.2f round trips, want 1", got)
	} else {
		t.Logf("the end of a session: %.2f round trips", got)
	}
}

// fewestTrips returns how many round trips f takes.
func fewestTrips(trip time.Duration, f func()) float64 {
	best := time.Hour
	for range 4 { // the machine's noise only ever adds
		begun := time.Now()
		f()
		best = min(best, time.Since(begun))
	}
	return float64(best) / float64(trip)
}

// TestBorrowedRoundTrips: a command over a connection of the daemon that its
// sessions have filled costs the opening, the shell, the command and its end, and no
// connection.
func TestBorrowedRoundTrips(t *testing.T) {
	const delay = 100 * time.Millisecond // each way
	f := openSSH(t, sshdtest.Options{})
	d, c := inProcess(t, daemon.Config{})
	path := serveSocket(t, d.Handler())
	target := f.target("web1")
	target.Keepalive = -1
	for range 4 { // two channels each, and two of the ten are left free
		mustOpen(t, c, target)
	}
	f.link.SetDelay(delay)
	defer f.link.SetDelay(0)
	once := func() {
		tr, err := client.Borrow(t.Context(), func(ctx context.Context) (net.Conn, error) { return socket.Dial(ctx, path) }, api.Lend{Key: target.Key()})
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		s, err := session.Open(t.Context(), tr, session.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if r, err := s.Run(t.Context(), session.Command{Text: "echo hi"}); err != nil || string(r.Stdout) != "hi\n" {
			t.Fatalf("Run = %q, %v", r.Stdout, err)
		}
	}
	// Once, for sshd may still count the channels of an earlier one.
	begun := time.Now()
	once()
	if got := float64(time.Since(begun)) / float64(2*delay); got > 6 { // one with a connection to be made takes 13
		t.Errorf("it took %.2f round trips, want 4", got)
	} else {
		t.Logf("%.2f round trips", got)
	}
	if n := f.link.Conns(); n != 1 {
		t.Errorf("%d connections, want the daemon's", n)
	}
}

// BenchmarkDaemon compares a warm command through the daemon, and for an agent,
// with the engine alone, in turns. The daemon is to cost at most 200 µs.
func BenchmarkDaemon(b *testing.B) {
	for _, shell := range shells {
		b.Run(shell, func(b *testing.B) {
			bare := open(b, local.New(local.Config{}), session.Config{Shell: shell, Reopen: true})
			d, err := daemon.New(daemon.Config{StateDir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer d.Drain(b.Context())
			path := serveSocket(b, d.Handler())
			c := client.At(path, "")
			defer c.Release()
			s, err := c.Open(b.Context(), api.Open{Target: gateway.Target{Name: "localhost", Local: true}, Shell: shell, Scope: "mcp", Name: "s"}, gateway.Caller{})
			if err != nil {
				b.Fatal(err)
			}
			agent := agentOf(b, path)
			var alone, ours, agents []time.Duration
			for b.Loop() {
				begun := time.Now()
				if _, err := bare.Run(b.Context(), session.Command{Text: "echo hi"}); err != nil {
					b.Fatal(err)
				}
				alone = append(alone, time.Since(begun))
				begun = time.Now()
				if r, err := c.Run(b.Context(), s.ID, api.Run{Text: "echo hi", Wait: api.Duration(time.Minute)}); err != nil || string(r.Result.Stdout) != "hi\n" {
					b.Fatal(r, err)
				}
				ours = append(ours, time.Since(begun))
				begun = time.Now()
				if r, err := agent.CallTool(b.Context(), &mcp.CallToolParams{Name: "run", Arguments: args{"session": "s", "command": "echo hi"}}); err != nil || r.IsError {
					b.Fatal(r, err)
				}
				agents = append(agents, time.Since(begun))
			}
			low, high := median(alone), median(ours)
			b.ReportMetric(low, "engine-µs")
			b.ReportMetric(high, "daemon-µs")
			b.ReportMetric(high-low, "more-µs")
			b.ReportMetric(median(agents)-high, "agent-more-µs")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// agentOf connects a client to a server for agents in this process.
func agentOf(b *testing.B, socket string) *mcp.ClientSession {
	b.Helper()
	g := gateway.New(gateway.Config{})
	here, err := hosts.New().Host("localhost")
	if err != nil {
		b.Fatal(err)
	}
	server := mcpserver.New(mcpserver.Config{Gateway: g, Hosts: []hosts.Host{here}, Daemon: func(scope string) *client.Client { return client.At(socket, scope) }}, "mcp")
	ours, theirs := mcp.NewInMemoryTransports()
	go server.Run(b.Context(), theirs) // ends with the benchmark
	session, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(b.Context(), ours, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { session.Close(); server.Close(); g.Close() })
	return session
}
