package ssh

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"gateway/internal/sshdtest"
)

// A sender is what a kernel makes of what a server says with Nagle's algorithm: while a
// segment that was not full is not acknowledged, only full ones are sent.
type sender struct {
	net.Conn
	// acknowledged: data from the client acknowledge what was sent. Nothing else does.
	acknowledged bool

	mu       sync.Mutex
	nagles   bool
	inFlight bool
	held     []byte
}

// begin begins with a segment on its way.
func (s *sender) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nagles, s.inFlight = true, true
}

func (s *sender) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nagles && s.acknowledged && err == nil {
		s.inFlight = false
		err = s.send()
	}
	return n, err
}

func (s *sender) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.nagles {
		return s.Conn.Write(p)
	}
	s.held = append(s.held, p...)
	return len(p), s.send()
}

// send sends what may be sent. s.mu is held.
func (s *sender) send() error {
	const segment = 1460
	n := len(s.held)
	if s.inFlight {
		n -= n % segment
	}
	_, err := s.Conn.Write(s.held[:n])
	s.inFlight = s.inFlight || n%segment > 0
	s.held = s.held[n:]
	return err
}

// A distantStream is one of which nothing is known: no round trip, and not who acknowledges.
type distantStream struct{ net.Conn }

// connect makes a connection to a server that calls itself OpenSSH, says everything on
// channels of that kind twice, and refuses all others. logged is called when the login
// is over, and watch when the connection begins.
func connect(t *testing.T, kind string, acknowledged bool, logged func(*sender), watch func(*wire)) *conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	key := sshdtest.NewKey(t, "ed25519").Signer
	go func() {
		raw, err := l.Accept()
		if err != nil {
			return // the test says so
		}
		config := &gossh.ServerConfig{NoClientAuth: true, ServerVersion: "SSH-2.0-OpenSSH_9.2"}
		config.AddHostKey(key)
		under := &sender{Conn: raw, acknowledged: acknowledged}
		_, channels, requests, err := gossh.NewServerConn(under, config)
		if err != nil {
			return
		}
		logged(under)
		go gossh.DiscardRequests(requests)
		for asked := range channels {
			if asked.ChannelType() != kind {
				_ = asked.Reject(gossh.UnknownChannelType, "open failed")
				continue
			}
			channel, requests, err := asked.Accept()
			if err != nil {
				return
			}
			go func() {
				for request := range requests {
					_ = request.Reply(true, nil)
				}
			}()
			go io.Copy(io.MultiWriter(channel, channel), channel)
		}
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	w := newWire(distantStream{raw})
	watch(w)
	mux, channels, requests, err := gossh.NewClientConn(w, "echo", &gossh.ClientConfig{HostKeyCallback: gossh.InsecureIgnoreHostKey()})
	if err != nil {
		t.Fatal(err)
	}
	c := newConn(Config{Name: "echo", ConnectTimeout: 10 * time.Second}, mux, channels, requests, w, func() {})
	t.Cleanup(c.close)
	return c
}

// TestFirstAnswerIsNotHeldBack: the first opening is answered while the announcement of
// host keys is on its way.
func TestFirstAnswerIsNotHeldBack(t *testing.T) {
	c := connect(t, "session", false, (*sender).begin, func(*wire) {})
	if !c.take(10, "", false) {
		t.Fatal("take = false on a new connection")
	}
	if _, err := c.start(t.Context(), execute("run"), func(*program) {}); err != nil {
		t.Errorf("start = %v", err)
	}
}

// tunnelled opens a connection through a bastion, and has each byte answered n times.
func tunnelled(t *testing.T, bastion *conn, n int) {
	t.Helper()
	tunnel, err := bastion.tunnel(t.Context(), &Config{Name: "behind", Addr: "127.0.0.1", Port: 22, ConnectTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer tunnel.Close()
	defer time.AfterFunc(time.Minute, func() { tunnel.Close() }).Stop() // what is held back never comes
	for i := range n {
		if _, err := tunnel.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(tunnel, make([]byte, 2)); err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
	}
}

// TestBastionIsAcknowledgedAtOnce: whatever comes from a machine that only passes on is
// acknowledged at once, however long the connection lasts: its sshd waits for that.
func TestBastionIsAcknowledgedAtOnce(t *testing.T) {
	var acknowledged atomic.Int32
	c := connect(t, "direct-tcpip", false, func(*sender) {}, func(w *wire) { w.quick = func() { acknowledged.Add(1) } })
	const answers = 3 * quickReads
	tunnelled(t, c, answers)
	if n := acknowledged.Load(); n < answers {
		t.Errorf("%d of %d answers were acknowledged at once", n, answers)
	}
}

// TestNudge: where another kernel acknowledges, the rest of an answer does not wait until
// that does so by itself.
func TestNudge(t *testing.T) {
	c := connect(t, "direct-tcpip", true, (*sender).begin, func(*wire) {})
	tunnelled(t, c, 3)
}

// A relay answers each question in two parts.
type relay struct {
	net.Conn
	holds func(answer int) bool // the second part waits for an ACK
	parts chan byte

	mu      sync.Mutex
	answers int
	waiting chan struct{} // closed by an ACK; nil: nothing waits for one
	held    int           // answers whose ACK was a delayed one
	nudged  int
}

func (r *relay) Write(p []byte) (int, error) {
	r.acknowledge() // as all data do
	r.mu.Lock()
	defer r.mu.Unlock()
	if p[0] != '?' {
		r.nudged++
		return len(p), nil
	}
	var waiting chan struct{}
	if r.holds(r.answers) {
		waiting = make(chan struct{})
	}
	r.waiting = waiting
	r.answers++
	go func() { // ends once both parts are read
		r.parts <- 1
		if waiting != nil {
			select {
			case <-waiting:
			case <-time.After(40 * time.Millisecond):
				r.mu.Lock()
				r.held++
				r.mu.Unlock()
			}
		}
		r.parts <- 2
	}()
	return len(p), nil
}

func (r *relay) acknowledge() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting != nil {
		close(r.waiting)
		r.waiting = nil
	}
}

func (r *relay) Read(p []byte) (int, error) {
	p[0] = <-r.parts
	return 1, nil
}

// TestPatientProxies: behind ssh -W, answers are held back from the first one.
func TestPatientProxies(t *testing.T) {
	for line, want := range map[string]bool{"nc %h %p": true, "ssh -W %h:%p b": false, "/usr/bin/ssh b -W %h:%p": false, "ssh b nc -w 5 %h %p": true} {
		p, err := startProxy(&Config{Name: "behind", HostKeys: &HostKeys{}, Addr: "127.0.0.1", Port: 22, ProxyCommand: "exit; " + line})
		if err != nil {
			t.Fatal(err)
		}
		if w := newWire(p); w.patient != want {
			t.Errorf("behind %q: patient = %v, want %v", line, w.patient, want)
		}
		p.Close()
		bury(p)
	}
}

// TestHeld: what holds the second part of an answer back until the first is acknowledged
// is noticed after three answers. What does not is never nudged.
func TestHeld(t *testing.T) {
	always, never := func(int) bool { return true }, func(int) bool { return false }
	for _, tt := range []struct {
		name    string
		patient bool
		holds   func(int) bool
		held    int
		nudged  bool
	}{
		{"in front of the server", false, always, 3, false},
		{"behind a proxy command", true, always, 3, true},
		{"nothing behind a proxy command", true, never, 0, false},
		{"programs that pause", true, func(n int) bool { return n%3 > 0 }, 133, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &relay{holds: tt.holds, parts: make(chan byte)}
				w := newWire(r)
				w.banner.Store(true)
				if tt.patient {
					w.patient, w.quickReads = true, 0
					timer := time.AfterFunc(time.Hour, func() { _, _ = w.Write([]byte("nudge")) })
					timer.Stop()
					w.nudge.Store(timer)
				} else {
					w.quick = r.acknowledge
				}
				for range 200 {
					_, _ = w.Write([]byte("?"))
					for part := byte(1); part <= 2; part++ {
						var b [1]byte
						if _, _ = w.Read(b[:]); b[0] != part {
							t.Fatalf("Read = %d, want %d", b[0], part)
						}
					}
					time.Sleep(5 * time.Millisecond)
				}
				r.mu.Lock()
				defer r.mu.Unlock()
				if r.held != tt.held || r.nudged > 0 != tt.nudged {
					t.Errorf("%d answers were held back, and %d nudges sent; want %d and %v", r.held, r.nudged, tt.held, tt.nudged)
				}
			})
		})
	}
}
