package ssh_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
	"gateway/transport"
	"gateway/transport/ssh"
)

// chain returns what reaches the last of the servers through all before it.
func chain(servers ...*sshdtest.Server) ssh.Config {
	var c *ssh.Config
	for i, s := range servers {
		hop := config(s)
		hop.Name, hop.Jump = fmt.Sprintf("hop%d", i+1), c
		c = &hop
	}
	return *c
}

func TestJumpChain(t *testing.T) {
	s := []*sshdtest.Server{sshdtest.Start(t, sshdtest.Options{}), sshdtest.Start(t, sshdtest.Options{}), sshdtest.Start(t, sshdtest.Options{})}
	c := chain(s...)
	tr := dial(t, c)
	if got, want := output(t, tr, "set -- $SSH_CONNECTION; echo $4"), strconv.Itoa(s[2].Port)+"\n"; got != want {
		t.Errorf("port = %q, want %q", got, want)
	}

	t.Run("host key changed at hop 2", func(t *testing.T) {
		c := chain(s...)
		wrong := hostKeys(s[1])
		wrong.Files = nil
		wrong.Pins = []string{"SHA256:" + strings.Repeat("A", 43)}
		c.Jump.HostKeys = wrong
		if err := refused(t, c, "hostkey.changed"); !errors.Is(err, transport.ErrHostKey) {
			t.Errorf("%v is not ErrHostKey", err)
		}
	})
	t.Run("credentials refused at hop 2", func(t *testing.T) {
		c := chain(s...)
		c.Jump.Identities = []ssh.Identity{{Path: sshdtest.NewKey(t, "ed25519").File}}
		refused(t, c, "auth.rejected", "hop2", "through hop1")
	})
	t.Run("nothing listens at hop 3", func(t *testing.T) {
		c := chain(s...)
		c.Port = 1
		refused(t, c, "proxy.failed", "hop3", "hop2 could not connect")
	})
	t.Run("silent at hop 3", func(t *testing.T) {
		silent := listen(t, hold)
		c := chain(s[0], s[1])
		silent.Jump = &c
		refused(t, silent, "ssh.handshake", "through hop2", "banner exchange")
	})
}

func TestJumpForbidden(t *testing.T) {
	bastion := sshdtest.Start(t, sshdtest.Options{Config: []string{"AllowTcpForwarding no"}})
	refused(t, chain(bastion, sshdtest.Start(t, sshdtest.Options{})), "proxy.failed", "hop1 forbids")
}

// Nobody is told to look at the address of a machine that the bastion has not tried.
func TestJumpUnknown(t *testing.T) {
	bastion := serveChannels(t, &gossh.ServerConfig{NoClientAuth: true}, func(channel gossh.NewChannel) {
		_ = channel.Reject(gossh.UnknownChannelType, "unsupported channel type")
	})
	bastion.Name = "bastion"
	c := bastion
	c.Name, c.Port, c.Jump = "web1", 1, &bastion
	if err := refused(t, c, "proxy.failed", "bastion makes no connections to other machines"); strings.Contains(err.Hint, "addr") {
		t.Errorf("hint = %q", err.Hint)
	}
}

func TestJumpShared(t *testing.T) {
	target, bastion := sshdtest.Start(t, sshdtest.Options{}), sshdtest.Start(t, sshdtest.Options{})
	p := netsim.Start(t, bastion.Addr, 0)
	c := chain(bastion, target)
	c.Jump.Port = p.Port()
	var all []*ssh.Transport
	var mu sync.Mutex
	var dialling sync.WaitGroup
	for range 5 {
		dialling.Go(func() {
			tr, err := ssh.Dial(t.Context(), c)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			all = append(all, tr)
			mu.Unlock()
		})
	}
	dialling.Wait()
	if p.Conns() != 1 {
		t.Errorf("%d connections to the bastion, want 1", p.Conns())
	}
	for _, tr := range all[1:] {
		tr.Close()
	}
	if got := output(t, all[0], "echo on"); got != "on\n" {
		t.Errorf("after the others closed: %q", got)
	}
	t.Run("the bastion's link breaks", func(t *testing.T) {
		pipe := pipe(t, all[0], "echo up; exec cat")
		if _, err := pipe.Stdout.Read(make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
		p.Cut(netsim.RST)
		if _, err := pipe.Wait(); !errors.Is(err, transport.ErrLost) {
			t.Errorf("Wait = %v, want %v", err, transport.ErrLost)
		}
		if got := output(t, all[0], "echo again"); got != "again\n" {
			t.Errorf("dialled anew: %q", got)
		}
	})
	all[0].Close()
	before := p.Conns()
	dial(t, c)
	if p.Conns() != before+1 {
		t.Errorf("the bastion's connection outlived its last user")
	}
}

// TestProxyCommandThatGoesOn: what a proxy command has started is gone with the connection,
// whatever it ignores.
func TestProxyCommandThatGoesOn(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t, sshdtest.Options{})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	relay := "GWTEST_RELAY=%h:%p '" + self + "' 3>&-"
	for name, command := range map[string]string{
		"it ignores all":         "trap '' TERM HUP; " + relay + "; exec sleep 1000",
		"what it started does":   "(trap '' TERM HUP; exec sleep 1000) 2>/dev/null & " + relay,
		"and the link never was": "trap '' TERM HUP; exec sleep 1000",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fifo := filepath.Join(t.TempDir(), "held")
			must(t, syscall.Mkfifo(fifo, 0o600))
			held, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer held.Close()
			c := config(s)
			c.ProxyCommand = "exec 3>'" + fifo + "'; " + command
			if name == "and the link never was" {
				c.ConnectTimeout = 500 * time.Millisecond
				refused(t, c, "ssh.handshake")
			} else {
				tr := dial(t, c)
				within(t, "Close", func() { tr.Close() })
			}
			if name == "what it started does" { // it is nobody's child here, and ends a moment later
				within(t, "its end", func() { _, err = held.Read(make([]byte, 1)) })
			} else {
				raw, _ := held.SyscallConn() // its error is that of the reading
				err = io.EOF
				if failed := raw.Read(func(fd uintptr) bool {
					if n, failed := syscall.Read(int(fd), make([]byte, 1)); n != 0 {
						err = failed
					}
					return true
				}); failed != nil {
					err = failed
				}
			}
			if err != io.EOF {
				t.Errorf("it goes on: %v", err)
			}
		})
	}
}

func TestProxyCommand(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := config(s)
	c.ProxyCommand = "GWTEST_RELAY=%h:%p exec '" + self + "'"
	tr := dial(t, c)
	if got := output(t, tr, "echo in"); got != "in\n" {
		t.Errorf("output = %q", got)
	}
	within(t, "Close", func() { tr.Close() })

	t.Run("fails", func(t *testing.T) {
		c.ProxyCommand = "echo no such tunnel >&2; exit 1"
		refused(t, c, "proxy.failed", "no such tunnel")
	})
	t.Run("warns", func(t *testing.T) {
		server := &gossh.ServerConfig{NoClientAuth: true}
		server.Ciphers = []string{gossh.InsecureCipherAES128CBC}
		c := serve(t, server)
		c.ProxyCommand = "echo a warning >&2; GWTEST_RELAY=%h:%p exec '" + self + "'"
		refused(t, c, "ssh.no_common_algorithm", "aes128-cbc", `"a warning"`)
		c = listen(t, say("SSH-2.0-x\r\n", func(conn net.Conn) { _, _ = io.ReadFull(conn, make([]byte, 100)) }))
		c.ConnectTimeout = patience // the relay takes its time to start
		c.ProxyCommand = "echo a warning >&2; GWTEST_RELAY=%h:%p exec '" + self + "'"
		refused(t, c, "ssh.closed", "key exchange", `"a warning"`)
		c = listen(t, hold)
		c.ProxyCommand = "echo a warning >&2; exec sleep 1000"
		refused(t, c, "ssh.handshake", "banner exchange", `"a warning"`)
	})
	t.Run("hangs up", func(t *testing.T) {
		c := c
		c.ProxyCommand = "echo a warning >&2; GWTEST_RELAY=%h:%p exec '" + self + "'"
		pipe, err := dial(t, c).Pipe(t.Context(), "kill -9 $PPID")
		if err != nil {
			t.Fatal(err)
		}
		_, err = pipe.Wait()
		wantCode(t, err, "link.lost", `the proxy command hung up; it said "a warning"`)
	})
	t.Run("silent", func(t *testing.T) {
		c.ProxyCommand, c.ConnectTimeout = "sleep 1000 | cat", 300*time.Millisecond
		if err := refused(t, c, "ssh.handshake", "300ms"); !strings.Contains(err.Hint, "proxy command") {
			t.Errorf("hint = %q, want one about the command", err.Hint)
		}
	})
	t.Run("no injection", func(t *testing.T) {
		c := c
		c.ProxyCommand = "nc %h %p"
		c.Addr = "$(touch pwned)"
		refused(t, c, "config.invalid", "$(touch pwned)")
	})
	t.Run("only what stands in it matters", func(t *testing.T) {
		c := c
		c.ProxyCommand, c.User = "echo %h %k 100%% >&2; exit 1", `CORP\me`
		refused(t, c, "proxy.failed", c.Addr+" web1 100%")
	})
	t.Run("unknown token", func(t *testing.T) {
		for line, token := range map[string]string{"nc %u %p": "%u", "nc %h %": "%"} {
			c := c
			c.ProxyCommand = line
			refused(t, c, "config.invalid", `"`+token+`"`)
		}
	})
}

// A bastion may take as long for a tunnel as the machine behind it is given.
func TestTunnelTakesTheTargetsTime(t *testing.T) {
	held := make(chan struct{})
	bastion := serveChannels(t, &gossh.ServerConfig{NoClientAuth: true}, func(gossh.NewChannel) { <-held })
	t.Cleanup(func() { close(held) })
	bastion.Name, bastion.ConnectTimeout = "bastion", 300*time.Millisecond
	c := listen(t, hold)
	c.Jump, c.ConnectTimeout = &bastion, time.Second
	began := time.Now()
	refused(t, c, "tcp.timeout", "web1", "no connection from bastion within 1s")
	if took := time.Since(began); took < c.ConnectTimeout || took >= 2*c.ConnectTimeout {
		t.Errorf("it took %v, want all of %v, once", took, c.ConnectTimeout)
	}
}

func TestJumpCancelled(t *testing.T) {
	silent := listen(t, hold)
	silent.Name, silent.ConnectTimeout = "bastion", time.Hour
	c := listen(t, hold)
	c.Jump = &silent
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	within(t, "Dial", func() {
		if _, err := ssh.Dial(ctx, c); !errors.Is(err, context.Canceled) {
			t.Errorf("Dial = %v, want %v", err, context.Canceled)
		}
	})
}

// Many addresses behind one bastion may be one machine, which turns some away
// while ten are at its door. All get in, and nobody logs in twice.
func TestManyBehindOneBastion(t *testing.T) {
	t.Parallel()
	const hosts = 300
	bastion := sshdtest.Start(t, sshdtest.Options{})
	s := sshdtest.Start(t, sshdtest.Options{Addresses: 16, Config: []string{"MaxStartups 10:30:100"}})
	var dialling sync.WaitGroup
	for i := range hosts {
		c := chain(bastion, s)
		c.Name, c.Addr = fmt.Sprintf("web%d", i), fmt.Sprintf("127.0.0.%d", i%16+1)
		c.HostKeys.Pins = []string{gossh.FingerprintSHA256(s.HostKey)}
		dialling.Go(func() {
			tr, err := ssh.Dial(t.Context(), c)
			if err != nil {
				t.Errorf("%s: %v", c.Name, err)
				return
			}
			tr.Close()
		})
	}
	dialling.Wait()
	t.Logf("%d turned away, and tried again", strings.Count(s.Log(), "drop connection"))
	within(t, "the log of all logins", func() {
		for strings.Count(s.Log(), "Accepted publickey") < hosts {
			runtime.Gosched()
		}
	})
	if n := strings.Count(s.Log(), "Accepted publickey"); n != hosts {
		t.Errorf("%d logins on %d hosts", n, hosts)
	}
	if n := strings.Count(bastion.Log(), "Accepted publickey"); n > 3 {
		t.Errorf("%d connections to the bastion", n)
	}
}

// A dial that has nobody to ask is nothing for a person to wait for, who would
// get its failure.
func TestJumpWhilePersonless(t *testing.T) {
	arrived, held := make(chan struct{}), make(chan struct{})
	var again atomic.Bool
	bastion := serve(t, &gossh.ServerConfig{
		PublicKeyCallback: func(gossh.ConnMetadata, gossh.PublicKey) (*gossh.Permissions, error) {
			if !again.Swap(true) {
				close(arrived)
				<-held
			}
			return nil, errors.New("no")
		},
		PasswordCallback: func(gossh.ConnMetadata, []byte) (*gossh.Permissions, error) { return nil, nil },
	})
	bastion.Name = "bastion"
	bastion.Identities = []ssh.Identity{{Path: sshdtest.NewKey(t, "ed25519").File}}
	c := listen(t, hold)
	c.Jump = &bastion
	var personless sync.WaitGroup
	personless.Go(func() { refused(t, c, "auth.rejected") })
	<-arrived
	asked := make(chan struct{})
	withPerson, hop := c, bastion
	hop.Ask = func(context.Context, ssh.Question) (string, error) { close(asked); return "x", nil }
	withPerson.Jump = &hop
	var person sync.WaitGroup
	person.Go(func() { refused(t, withPerson, "proxy.failed", "bastion could not connect") })
	defer person.Wait()
	defer personless.Wait()
	defer close(held)
	within(t, "the question", func() { <-asked })
}

// TestSilentBastion: a flow to the bastion that a router has forgotten is no reason to
// fail where another connection gets through, also for those who wait for their turn.
func TestSilentBastion(t *testing.T) {
	t.Parallel()
	bastion, target := sshdtest.Start(t, sshdtest.Options{}), sshdtest.Start(t, sshdtest.Options{})
	p := netsim.Start(t, bastion.Addr, 0)
	c := chain(bastion, target)
	c.Jump.Port, c.ConnectTimeout = p.Port(), 4*time.Second
	tr := dial(t, c)
	p.Cut(netsim.Hang)
	var others sync.WaitGroup
	for range 20 {
		others.Go(func() {
			other, err := ssh.Dial(t.Context(), c)
			if err != nil {
				t.Errorf("Dial = %v", err)
				return
			}
			t.Cleanup(func() { other.Close() })
		})
	}
	if got := output(t, tr, "echo in again"); got != "in again\n" {
		t.Errorf("output = %q", got)
	}
	others.Wait()
	if p.Conns() != 2 {
		t.Errorf("%d connections to the bastion, want 2", p.Conns())
	}
}

// Who waits for a bastion that somebody else dials, and has a deadline, has not been
// interrupted.
func TestNoBastionInTime(t *testing.T) {
	arrived := make(chan struct{}, 1)
	bastion := listen(t, func(conn net.Conn) { arrived <- struct{}{}; hold(conn) })
	bastion.Name, bastion.ConnectTimeout = "bastion", time.Hour
	c := listen(t, hold)
	c.Jump = &bastion
	first, cancel := context.WithCancel(t.Context())
	var dialling sync.WaitGroup
	dialling.Go(func() {
		if _, err := ssh.Dial(first, c); !errors.Is(err, context.Canceled) {
			t.Errorf("Dial = %v, want %v", err, context.Canceled)
		}
	})
	defer dialling.Wait()
	defer cancel()
	<-arrived
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	_, err := ssh.Dial(ctx, c)
	wantCode(t, err, "ssh.closed", "bastion", "deadline")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Dial = %v, want %v", err, context.DeadlineExceeded)
	}
}
