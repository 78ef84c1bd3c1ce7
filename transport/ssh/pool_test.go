package ssh_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
	"gateway/transport"
	"gateway/transport/ssh"
)

func TestSecondConnection(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{Config: []string{"MaxSessions 2"}})
	p := netsim.Start(t, s.Addr, 0)
	tr := dial(t, behind(p, s))
	for range 5 { // nobody told the client about MaxSessions
		term := terminal(t, tr, "echo up; exec cat")
		if _, err := io.ReadFull(term, make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
	}
	if p.Conns() != 3 {
		t.Errorf("%d connections for 5 programs, want 3", p.Conns())
	}
}

// TestFullConnectionsAreKnown: where the machine allows less than anybody said, only
// so many connections are asked in vain.
func TestFullConnectionsAreKnown(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t, sshdtest.Options{Config: []string{"MaxSessions 2"}})
	p := netsim.Start(t, s.Addr, 0)
	tr := dial(t, behind(p, s))
	open := func() {
		t.Helper()
		term := terminal(t, tr, "echo up; exec cat")
		if _, err := io.ReadFull(term, make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		open()
	}
	<-time.After(1100 * time.Millisecond) // for so long, what has refused is not asked again
	open()
	if p.Conns() != 6 {
		t.Errorf("%d connections for 11 programs, want 6", p.Conns())
	}
}

// TestSilentConnection: a flow that a router has forgotten is noticed much later, and is
// no reason to fail where another connection gets through.
func TestSilentConnection(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t, sshdtest.Options{})
	p := netsim.Start(t, s.Addr, 0)
	c := behind(p, s)
	c.ConnectTimeout, c.MaxSessions = 2*time.Second, 4 // two of them for programs
	tr := dial(t, c)
	var terminals []transport.Terminal
	for range 3 { // all have said something: nothing of theirs is under way
		term := terminal(t, tr, "echo up; exec cat")
		if _, err := io.ReadFull(term, make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
		terminals = append(terminals, term)
	}
	terminals[0].Close()
	<-terminals[0].Done()
	p.Cut(netsim.Hang) // both have a channel left
	begun := time.Now()
	for range 2 {
		if got := output(t, tr, "echo in again"); got != "in again\n" {
			t.Errorf("output = %q", got)
		}
	}
	if took := time.Since(begun); p.Conns() != 3 || took >= 2*c.ConnectTimeout {
		t.Errorf("%d connections after %v, want 3, and one of those that were there asked in vain", p.Conns(), took)
	}
	p.SetDelay(time.Hour)
	p.Cut(netsim.Hang)
	_, err := tr.Pipe(t.Context(), "true")
	wantCode(t, err, "ssh.handshake")
}

// forward connects a client with a server, until either hangs up.
func forward(t *testing.T, client net.Conn, server *sshdtest.Server) {
	far, err := net.Dial("tcp", server.Addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer far.Close()
	go func() {
		_, _ = io.Copy(far, client) // ends with the client
		far.Close()
	}()
	_, _ = io.Copy(client, far)
}

// TestOneMachineOfSeveral: a name that stands for several machines stands for one of
// them as long as something runs there.
func TestOneMachineOfSeveral(t *testing.T) {
	first, other := sshdtest.Start(t, sshdtest.Options{}), sshdtest.Start(t, sshdtest.Options{})
	bothKeys := func(c *ssh.Config) {
		c.HostKeys.Pins = []string{gossh.FingerprintSHA256(first.HostKey), gossh.FingerprintSHA256(other.HostKey)}
		c.Identities = append(c.Identities, ssh.Identity{Path: other.KeyFile})
		c.MaxSessions = 1
	}
	t.Run("by its address", func(t *testing.T) {
		var asked atomic.Int32
		nameServer(t, func(query []byte) []byte {
			addresses := []string{first.Host, "127.0.0.2"}
			if asked.Add(1) > 2 { // IPv4 and IPv6 of the first dial
				addresses[0], addresses[1] = addresses[1], addresses[0]
			}
			return dnsAnswer(query, 0, addresses...)
		})
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", strconv.Itoa(first.Port)))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		c := config(first)
		c.Addr, c.ConnectTimeout = "several.example", 4*time.Second
		bothKeys(&c)
		tr := dial(t, c)
		terminal(t, tr, "exec cat")
		if got := output(t, tr, "echo in"); got != "in\n" {
			t.Errorf("output = %q", got)
		}
	})
	t.Run("by its key", func(t *testing.T) {
		var seen atomic.Int32
		c := config(first)
		c.Port = listen(t, func(conn net.Conn) {
			if seen.Add(1) == 1 {
				forward(t, conn, first)
			} else {
				forward(t, conn, other)
			}
		}).Port
		bothKeys(&c)
		tr := dial(t, c)
		term := terminal(t, tr, "exec cat")
		_, err := tr.Pipe(t.Context(), "true")
		wantCode(t, err, "session.limit", "another host key")
		term.Close()
		tr.Close()
	})
}

// TestMoreHostKeysKnown: the machine of a further connection is told by the key that it
// showed first, also where known_hosts has got others of its keys since.
func TestMoreHostKeysKnown(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{HostKeys: []string{"ed25519", "rsa"}})
	line := func(key gossh.PublicKey) string { return fmt.Sprintf("[%s]:%d %s\n", s.Host, s.Port, keyLine(key)) }
	file := knownFile(t, line(s.HostKeys[1]))
	c := config(s)
	c.MaxSessions, c.HostKeys.Files = 1, []string{file}
	tr := dial(t, c)
	terminal(t, tr, "exec cat")
	must(t, os.WriteFile(file, []byte(line(s.HostKeys[0])+line(s.HostKeys[1])), 0o600))
	if got := output(t, tr, "echo in"); got != "in\n" {
		t.Errorf("output = %q", got)
	}
}

// TestUnreadConnectionStays: a further connection is closed once nobody uses it, but not
// before what came on it has been read.
func TestUnreadConnectionStays(t *testing.T) {
	t.Parallel() // it waits for linger, twice
	s := sshdtest.Start(t, sshdtest.Options{})
	var seen atomic.Int32
	gone := make(chan int32, 3)
	c := config(s)
	c.MaxSessions = 1
	c.Port = listen(t, func(conn net.Conn) {
		n := seen.Add(1)
		forward(t, conn, s)
		gone <- n
	}).Port
	tr := dial(t, c)
	terminal(t, tr, "exec cat")
	unread := pipe(t, tr, "read x; head -c 1000000 /dev/zero")
	defer unread.Close()
	later := terminal(t, tr, "exec cat")
	unread.Stdin.Close() // its connection had no room
	if _, err := unread.Wait(); err != nil {
		t.Fatal(err)
	}
	wantGone := func(want int32) {
		t.Helper()
		within(t, "the end of a connection that nobody uses", func() {
			if n := <-gone; n != want {
				t.Errorf("connection %d is closed first, want %d", n, want)
			}
		})
	}
	later.Close() // behind the program whose output is not read
	wantGone(3)
	if got := len(read(t, unread.Stdout)); got != 1000000 {
		t.Errorf("%d bytes, want 1000000", got)
	}
	wantGone(2)
}

func TestSpareChannels(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	p := netsim.Start(t, s.Addr, 0)
	tr := dial(t, behind(p, s))
	var opening sync.WaitGroup
	for range 8 {
		opening.Go(func() { terminal(t, tr, "exec cat") })
	}
	opening.Wait()
	for _, open := range []func() (*transport.Pipe, error){
		func() (*transport.Pipe, error) { return tr.Subsystem(t.Context(), "sftp") },
		func() (*transport.Pipe, error) { return tr.Whole().Pipe(t.Context(), "echo whole") },
	} {
		pipe, err := open()
		if err != nil {
			t.Fatal(err)
		}
		defer pipe.Close()
	}
	if p.Conns() != 1 {
		t.Errorf("%d connections, want 1", p.Conns())
	}
	terminal(t, tr, "exec cat")
	if p.Conns() != 2 {
		t.Errorf("%d connections, want 2", p.Conns())
	}
	p.Close()
}

func TestSessionLimit(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{Config: []string{"MaxSessions 0"}})
	_, err := dial(t, config(s)).Pipe(t.Context(), "true")
	wantCode(t, err, "session.limit", "web1")
}

func TestSecondConnectionRefused(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t, sshdtest.Options{Config: []string{"MaxSessions 1"}})
	var seen atomic.Int32
	c := config(s)
	c.Port = listen(t, func(conn net.Conn) {
		if seen.Add(1) == 1 {
			forward(t, conn, s)
		}
	}).Port
	tr := dial(t, c)
	terminal(t, tr, "exec cat")
	_, err := tr.Pipe(t.Context(), "true")
	wantCode(t, err, "session.limit", "closed by the server")
	tr.Close()
}

// TestNoConnectionInTime: two openings need a new connection, which does not come
// before the deadline of both. It is no interrupt.
func TestNoConnectionInTime(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	p := netsim.Start(t, s.Addr, 0)
	tr := dial(t, behind(p, s))
	pipe := pipe(t, tr, "exec cat")
	p.Stall()
	p.Cut(netsim.RST)
	_, _ = pipe.Wait() // the end is known
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	for range 2 { // the second time without any time left
		var opening sync.WaitGroup
		for range 2 {
			opening.Go(func() {
				pipe, err := tr.Pipe(ctx, "true")
				if err == nil {
					pipe.Close()
				}
				if got := codeOf(err); got != "ssh.closed" && got != "ssh.handshake" || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Pipe = %v [%s], want ssh.closed or ssh.handshake", err, got)
				}
			})
		}
		opening.Wait()
	}
}

// TestWaiterOutlivesTheDialler: who waits for a connection that somebody else
// dials goes on when that one's deadline has come, and has its own time.
func TestWaiterOutlivesTheDialler(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t, sshdtest.Options{})
	for name, open := range map[string]func(*testing.T, *netsim.Proxy) func(context.Context) error{
		"bastion": func(_ *testing.T, p *netsim.Proxy) func(context.Context) error {
			c, bastion := config(s), behind(p, s)
			bastion.Name, c.Jump = "bastion", &bastion
			return func(ctx context.Context) error {
				tr, err := ssh.Dial(ctx, c)
				if err == nil {
					tr.Close()
				}
				return err
			}
		},
		"pool": func(t *testing.T, p *netsim.Proxy) func(context.Context) error {
			tr := dial(t, behind(p, s))
			pipe := pipe(t, tr, "exec cat")
			p.Cut(netsim.RST)
			_, _ = pipe.Wait() // the end is known
			return func(ctx context.Context) error {
				pipe, err := tr.Pipe(ctx, "true")
				if err == nil {
					pipe.Close()
				}
				return err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := netsim.Start(t, s.Addr, 0)
			opening := open(t, p)
			before := p.Conns()
			p.Stall()
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			var waiter sync.WaitGroup
			waiter.Go(func() {
				for p.Conns() == before { // the other one is dialling
					runtime.Gosched()
				}
				if err := opening(t.Context()); err != nil {
					t.Errorf("the one who waits: %v", err)
				}
			})
			if err := opening(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the one who dials: %v, want its deadline", err)
			}
			p.Resume()
			waiter.Wait()
		})
	}
}

func TestThrottled(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t, sshdtest.Options{Config: []string{"MaxStartups 2:50:4"}})
	var dialling sync.WaitGroup
	for range 30 {
		dialling.Go(func() {
			tr, err := ssh.Dial(t.Context(), config(s))
			if err != nil {
				t.Errorf("Dial = %v", err)
				return
			}
			tr.Close()
		})
	}
	dialling.Wait()
	t.Logf("%d turned away", strings.Count(s.Log(), "drop connection"))
}

// TestTurnedAway: a server that has no room, in the words of OpenSSH before 9.8 and since,
// has room again when others have logged in.
func TestTurnedAway(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	for _, word := range []string{"Exceeded MaxStartups\r\n", "Not allowed at this time\r\n"} {
		t.Run(strings.TrimSpace(word), func(t *testing.T) {
			t.Parallel()
			var seen atomic.Int32
			c := config(s)
			c.Port = listen(t, func(conn net.Conn) {
				if seen.Add(1) < 3 {
					say(word, nothing)(conn)
					return
				}
				forward(t, conn, s)
			}).Port
			tr, err := ssh.Dial(t.Context(), c)
			if err != nil {
				t.Fatalf("Dial = %v", err)
			}
			tr.Close()
		})
	}
}

// TestTurnedAwayWithoutAWord: dropbear says nothing to what is over five logins at
// once, and has room again when one of them is over.
func TestTurnedAwayWithoutAWord(t *testing.T) {
	t.Parallel()
	s := sshdtest.StartDropbear(t, sshdtest.Options{})
	var logins [5]net.Conn
	for i := range logins {
		var err error
		if logins[i], err = net.Dial("tcp", s.Addr); err != nil {
			t.Fatal(err)
		}
		defer logins[i].Close()
		if _, err := io.ReadFull(logins[i], make([]byte, len("SSH-"))); err != nil { // it has its place
			t.Fatal(err)
		}
	}
	p := netsim.Start(t, s.Addr, 0)
	dialled := make(chan error, 1)
	go func() {
		tr, err := ssh.Dial(t.Context(), behind(p, s))
		if err == nil {
			tr.Close()
		}
		dialled <- err
	}()
	for p.Conns() < 2 && len(dialled) == 0 { // until it was turned away, and comes again
		<-time.After(time.Millisecond)
	}
	for _, login := range logins {
		login.Close()
	}
	if err := <-dialled; err != nil {
		t.Errorf("Dial = %v", err)
	}
}

// TestHandshakesAtOnce: the ninth handshake with a machine waits.
func TestHandshakesAtOnce(t *testing.T) {
	const most = 8
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seen atomic.Int32
	full := make(chan struct{})
	c := listen(t, func(conn net.Conn) {
		if seen.Add(1) == most {
			close(full)
		}
		hold(conn)
	})
	c.ConnectTimeout = time.Hour
	var dialling sync.WaitGroup
	for range most {
		dialling.Go(func() {
			if _, err := ssh.Dial(ctx, c); !errors.Is(err, context.Canceled) {
				t.Errorf("Dial = %v, want %v", err, context.Canceled)
			}
		})
	}
	<-full
	late, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	defer stop()
	if _, err := ssh.Dial(late, c); codeOf(err) != "ssh.throttled" || seen.Load() != most {
		t.Errorf("Dial = %v beside %d handshakes, want none beside %d", err, seen.Load(), most)
	}
	cancel()
	within(t, "Dial", dialling.Wait)
}

// TestRefusedBesideAnOpening: that the machine allows no second channel is not that it
// allows none, also where the answer to the first opening is still on its way.
func TestRefusedBesideAnOpening(t *testing.T) {
	accept := func(channel gossh.NewChannel) {
		_, requests, err := channel.Accept()
		if err != nil {
			return
		}
		go grant(requests)
	}
	var seen atomic.Int32
	held := make(chan gossh.NewChannel, 1)
	tr := dial(t, serveChannels(t, &gossh.ServerConfig{NoClientAuth: true}, func(channel gossh.NewChannel) {
		switch seen.Add(1) {
		case 1:
			held <- channel
		case 2:
			_ = channel.Reject(gossh.ResourceShortage, "open failed")
		default: // on another connection
			accept(<-held)
			accept(channel)
		}
	}))
	var opening sync.WaitGroup
	for range 2 {
		opening.Go(func() {
			pipe, err := tr.Pipe(t.Context(), "cat")
			if err != nil {
				t.Errorf("Pipe = %v", err)
				return
			}
			pipe.Close()
		})
	}
	within(t, "opening", opening.Wait)
}

// TestManyOpeningsAtOnce: a machine that allows few channels on a connection gets as
// many connections as it takes, also where all openings come at once.
func TestManyOpeningsAtOnce(t *testing.T) {
	t.Parallel()
	const programs = 12
	tr := dial(t, config(sshdtest.Start(t, sshdtest.Options{Config: []string{"MaxSessions 1"}})))
	var opening sync.WaitGroup
	for range programs {
		opening.Go(func() {
			pipe, err := tr.Pipe(t.Context(), "exec cat")
			if err != nil {
				t.Errorf("Pipe = %v", err)
				return
			}
			t.Cleanup(func() { pipe.Close() })
		})
	}
	within(t, "opening", opening.Wait)
}
