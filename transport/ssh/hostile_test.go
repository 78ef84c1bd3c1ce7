package ssh_test

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"regexp"
	"runtime"
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

// listen serves every connection to a port of this machine with handle, until
// the test ends.
func listen(t *testing.T, handle func(net.Conn)) ssh.Config {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	conns := map[net.Conn]bool{}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns[conn] = true
			mu.Unlock()
			serving.Go(func() {
				handle(conn)
				conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for conn := range conns {
			conn.Close()
		}
		mu.Unlock()
		serving.Wait()
	})
	port := l.Addr().(*net.TCPAddr).Port
	return ssh.Config{
		Name: "web1", Addr: "127.0.0.1", Port: port, User: "u", ConnectTimeout: 300 * time.Millisecond,
		HostKeys: &ssh.HostKeys{Name: "web1", Policy: ssh.AcceptNew, Write: filepath.Join(t.TempDir(), "known_hosts")},
	}
}

// serve runs a server of x/crypto that opens no channels.
func serve(t *testing.T, server *gossh.ServerConfig) ssh.Config {
	t.Helper()
	return serveChannels(t, server, func(channel gossh.NewChannel) { _ = channel.Reject(gossh.ResourceShortage, "none") })
}

func serveChannels(t *testing.T, server *gossh.ServerConfig, open func(gossh.NewChannel)) ssh.Config {
	t.Helper()
	server.AddHostKey(sshdtest.NewKey(t, "ed25519").Signer)
	c := listen(t, func(conn net.Conn) {
		s, channels, requests, err := gossh.NewServerConn(conn, server)
		if err != nil {
			return
		}
		defer s.Close()
		go gossh.DiscardRequests(requests)
		for channel := range channels {
			open(channel)
		}
	})
	c.ConnectTimeout = 5 * time.Second
	return c
}

func hold(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

func say(text string, then func(net.Conn)) func(net.Conn) {
	return func(conn net.Conn) {
		_, _ = io.WriteString(conn, text)
		then(conn)
	}
}

func nothing(net.Conn) {}

func TestHostile(t *testing.T) {
	for _, test := range []struct {
		name, code string
		texts      []string
		handle     func(net.Conn)
	}{
		{"silent", "ssh.handshake", []string{"banner exchange", "300ms"}, hold},
		{"silent after some text", "ssh.handshake", []string{"banner exchange", "220 mail"}, say("220 mail\x1b ready\r\n", hold)},
		{"silent after the banner", "ssh.handshake", []string{"key exchange"}, say("SSH-2.0-x\r\n", hold)},
		{"closes", "ssh.closed", []string{"closed by the server", "banner exchange"}, nothing},
		{"closes after the banner", "ssh.closed", []string{"key exchange"}, say("SSH-2.0-x\r\n", func(conn net.Conn) {
			_, _ = io.ReadFull(conn, make([]byte, 100)) // else the close is a reset
		})},
		{"says why", "ssh.closed", []string{"out of order"}, say("out of order\r\n", nothing)},
		{"throttles", "ssh.throttled", []string{"Exceeded MaxStartups"}, say("Exceeded MaxStartups\r\n", nothing)},
		{"penalizes", "ssh.throttled", []string{"Not allowed at this time"}, say("Not allowed at this time\r\n", nothing)},
		{"speaks something else", "ssh.handshake", nil, say("SSH-2.0-x\r\nHTTP/1.1 400 Bad Request, this is not what you think it is\r\n\r\n", hold)},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := refused(t, listen(t, test.handle), test.code, append(test.texts, "web1")...)
			if !errors.Is(err, transport.ErrUnreachable) {
				t.Errorf("%v is not ErrUnreachable", err)
			}
			// To wait helps against a penalty alone, and fewer at once against the other.
			if penalized := strings.Contains(err.Hint, "penalty"); penalized != (test.name == "penalizes") {
				t.Errorf("the hint is %q", err.Hint)
			}
		})
	}
}

func TestHostileAuthentication(t *testing.T) {
	held := make(chan struct{})
	c := serve(t, &gossh.ServerConfig{PasswordCallback: func(gossh.ConnMetadata, []byte) (*gossh.Permissions, error) {
		<-held
		return nil, errors.New("no")
	}})
	c.ConnectTimeout = 300 * time.Millisecond
	c.Password = func(context.Context) (string, error) { return "x", nil }
	refused(t, c, "ssh.handshake", "authentication")
	close(held)
}

func TestNoCommonAlgorithm(t *testing.T) {
	server := &gossh.ServerConfig{NoClientAuth: true}
	server.Ciphers = []string{gossh.InsecureCipherAES128CBC}
	refused(t, serve(t, server), "ssh.no_common_algorithm", "cipher", "aes128-cbc")
}

func TestNotReached(t *testing.T) {
	c := listen(t, hold)
	t.Run("refused", func(t *testing.T) {
		c := c
		c.Port = sshdtest.ClosedPort
		refused(t, c, "tcp.refused", "web1", "127.0.0.1")
	})
	t.Run("name", func(t *testing.T) {
		c := c
		c.Addr = "nonexistent.invalid"
		refused(t, c, "dns.not_found", "nonexistent.invalid")
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := listen(t, func(conn net.Conn) { cancel(); hold(conn) })
		c.ConnectTimeout = time.Hour
		within(t, "Dial", func() {
			if _, err := ssh.Dial(ctx, c); !errors.Is(err, context.Canceled) {
				t.Errorf("Dial = %v, want %v", err, context.Canceled)
			}
		})
	})
	t.Run("caller's deadline", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		c := c
		c.ConnectTimeout = time.Hour
		_, err := ssh.Dial(ctx, c)
		wantCode(t, err, "ssh.handshake")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Dial = %v, want %v", err, context.DeadlineExceeded)
		}
	})
}

// TestCancelledBeforeTheNextTry: who gives up while a server that turns connections away
// is left alone for a moment has given up, and was not turned away.
func TestCancelledBeforeTheNextTry(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := listen(t, say("Exceeded MaxStartups\r\n", nothing))
	c.ConnectTimeout = time.Hour
	failed := make(chan error, 1)
	go func() {
		_, err := ssh.Dial(ctx, c)
		failed <- err
	}()
	within(t, "Dial", func() {
		for !waitsForNextTry.MatchString(stacks()) {
			runtime.Gosched()
		}
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("Dial = %v, want %v", err, context.Canceled)
		}
	})
}

// TestLateAfterBeingTurnedAway: a server that turned the first try away, and says nothing to
// the next one, has turned the connection away.
func TestLateAfterBeingTurnedAway(t *testing.T) {
	for code, word := range map[string]string{"ssh.throttled": "Exceeded MaxStartups\r\n", "ssh.closed": ""} {
		for _, whose := range []string{"connect_timeout", "the caller's"} {
			t.Run(code+", "+whose, func(t *testing.T) {
				t.Parallel()
				var tries atomic.Int32
				c := listen(t, func(conn net.Conn) {
					if tries.Add(1) == 1 {
						_, _ = io.WriteString(conn, word)
						return
					}
					_, _ = io.Copy(io.Discard, conn)
				})
				ctx := t.Context()
				if c.ConnectTimeout = 2 * time.Second; whose != "connect_timeout" {
					c.ConnectTimeout = time.Hour
					late, cancel := context.WithTimeout(ctx, 2*time.Second)
					defer cancel()
					ctx = late
				}
				if _, err := ssh.Dial(ctx, c); codeOf(err) != code || tries.Load() != 2 {
					t.Errorf("Dial = %v after %d tries, want the code %s after 2", err, tries.Load(), code)
				}
			})
		}
	}
}

var waitsForNextTry = regexp.MustCompile(`\[select\]:\n.*\.dialThrough\(`)

// grant says yes to all requests, until the channel ends.
func grant(requests <-chan *gossh.Request) {
	for r := range requests {
		_ = r.Reply(true, nil)
	}
}

// TestWriteUnderWay closes a program whose server takes no more: what was being
// sent may have been, and is not said to be unsent.
func TestWriteUnderWay(t *testing.T) {
	const window = 2 << 20 // of an x/crypto server, which reads nothing here
	tr := dial(t, serveChannels(t, &gossh.ServerConfig{NoClientAuth: true}, func(channel gossh.NewChannel) {
		_, requests, err := channel.Accept()
		if err != nil {
			return
		}
		go grant(requests)
	}))
	pipe := pipe(t, tr, "cat")
	first, err := pipe.Stdin.Write(make([]byte, window))
	if first != window || err != nil {
		t.Fatalf("Write = %d, %v, want a window full", first, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if n, err := pipe.Stdin.Write([]byte("touch x\n")); n == 0 || !errors.Is(err, transport.ErrClosed) {
			t.Errorf("Write = %d, %v, want what was under way and %v", n, err, transport.ErrClosed)
		}
	}()
	within(t, "Close", func() {
		for !isWriting() {
			runtime.Gosched()
		}
		pipe.Close()
		<-done
	})
}

// TestWriteCutOff writes more than the server takes before it closes the channel:
// what fitted its window was sent.
func TestWriteCutOff(t *testing.T) {
	const window, before = 2 << 20, 10
	hangUp := make(chan struct{})
	tr := dial(t, serveChannels(t, &gossh.ServerConfig{NoClientAuth: true}, func(channel gossh.NewChannel) {
		remote, requests, err := channel.Accept()
		if err != nil {
			return
		}
		go grant(requests)
		go func() { // ends with the test
			<-hangUp
			remote.Close()
		}()
	}))
	pipe := pipe(t, tr, "cat")
	defer pipe.Close()
	if n, err := pipe.Stdin.Write(make([]byte, before)); n != before || err != nil {
		t.Fatalf("Write = %d, %v, want %d", n, err, before)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if n, err := pipe.Stdin.Write(make([]byte, window)); n != window-before || err == nil {
			t.Errorf("Write = %d, %v, want %d and an error", n, err, window-before)
		}
	}()
	within(t, "Write", func() {
		for !windowIsFull() {
			runtime.Gosched()
		}
		close(hangUp)
		<-done
	})
}

// windowIsFull reports whether some goroutine waits for the window of a channel.
func windowIsFull() bool { return waitsForWindow.MatchString(stacks()) }

var waitsForWindow = regexp.MustCompile(`sync\.\(\*Cond\)\.Wait\(.*\n.*\n.*\(\*window\)\.reserve\(`)

// isWriting reports whether some goroutine waits in the Write of a channel.
func isWriting() bool { return isIn("(*channel).send(") }

// isIn reports whether some goroutine is in a function.
func isIn(function string) bool { return strings.Contains(stacks(), function) }

// stacks is where all goroutines are.
func stacks() string {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, true)])
}

// TestEndWithoutClose has a server that ends a terminal's output and then says
// nothing more: nobody who asks for what comes may wait for that.
func TestEndWithoutClose(t *testing.T) {
	tr := dial(t, serveChannels(t, &gossh.ServerConfig{NoClientAuth: true}, func(channel gossh.NewChannel) {
		remote, requests, err := channel.Accept()
		if err != nil {
			return
		}
		go func() { // ends with the channel
			for range requests {
			}
		}()
		_ = remote.CloseWrite()
	}))
	term := terminal(t, tr, "sh")
	read, ended := make(chan error, 1), make(chan error, 1)
	go func() { _, err := term.Read(make([]byte, 1)); read <- err }()
	within(t, "Deliver", func() {
		for !isIn("(*program).over(") { // Read has met the end
			runtime.Gosched()
		}
		term.(transport.Deliverer).Deliver(func([]byte) {}, func(err error) { ended <- err })
	})
	term.Close()
	for name, end := range map[string]chan error{"Read": read, "end": ended} {
		if err := <-end; !errors.Is(err, transport.ErrClosed) {
			t.Errorf("%s: %v, want %v", name, err, transport.ErrClosed)
		}
	}
}

func TestSilentChannel(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t, sshdtest.Options{})
	p := netsim.Start(t, s.Addr, 0)
	c := behind(p, s)
	c.ConnectTimeout = 2 * time.Second
	tr := dial(t, c)
	pipe := pipe(t, tr, "cat")
	p.Stall()
	t.Run("open", func(t *testing.T) {
		_, err := tr.Terminal(t.Context(), "true", transport.TerminalOptions{})
		wantCode(t, err, "ssh.handshake", "banner exchange") // of one more connection
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		if _, err := tr.Pipe(ctx, "true"); !errors.Is(err, context.Canceled) {
			t.Errorf("Pipe = %v, want %v", err, context.Canceled)
		}
	})
	t.Run("read, write and close", func(t *testing.T) {
		within(t, "Close", func() {
			done := make(chan error, 2)
			go func() { _, err := pipe.Stdout.Read(make([]byte, 1)); done <- err }()
			go func() {
				_, err := pipe.Stdin.Write(make([]byte, 64<<20)) // more than the window
				done <- err
			}()
			pipe.Close()
			for range 2 {
				if err := <-done; !errors.Is(err, transport.ErrClosed) {
					t.Errorf("after Close: %v, want %v", err, transport.ErrClosed)
				}
			}
			if _, err := pipe.Wait(); !errors.Is(err, transport.ErrClosed) {
				t.Errorf("Wait = %v, want %v", err, transport.ErrClosed)
			}
		})
	})
	within(t, "closing the transport", func() { tr.Close() })
}
