package gateway

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gateway/hosts"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/ssh"
)

// A Step is one layer of the way to a host, as [Gateway.Check] found it.
type Step struct {
	// Layer is inventory, name, tcp, proxy, banner, kex, hostkey, auth, session,
	// shell or sftp.
	Layer string
	// Jump is the host on the way whose layer it is; empty for that of the host
	// itself.
	Jump string
	OK   bool
	// Detail says what was found, or what went wrong.
	Detail string
	// Code and Hint are of what went wrong.
	Code, Hint string
	// Duration is the time since the step before.
	Duration time.Duration
}

// Check walks the way to a host layer by layer, up to a shell that answers, and
// reports each step as it is known, one at a time. The first layer that fails ends
// it, and is the error. Missing sftp is reported, and is none. No host key is
// recorded, and nobody is asked about one, whatever the hosts' policies say.
func (g *Gateway) Check(ctx context.Context, name string, report func(Step)) error {
	c := &check{report: report, last: time.Now()}
	host, err := g.Resolve(ctx, name)
	if err != nil {
		return c.failed("inventory", err)
	}
	t, err := c.connect(ctx, g, host)
	if err != nil {
		return err
	}
	defer g.release(t)
	s, err := session.Open(ctx, t, g.sessionConfig(host, Options{}))
	if err != nil {
		return c.failed("session", err)
	}
	defer s.Close()
	terminal := "with a terminal"
	if !s.Terminal() {
		terminal = "the account gets no terminal"
	}
	c.passed("session", terminal)
	r, err := s.Run(ctx, session.Command{Text: "echo up", Timeout: 10 * time.Second})
	switch {
	case err != nil:
		return c.failed("shell", err)
	case string(r.Stdout) != "up\n":
		return c.failed("shell", &transport.Error{Code: "shell.no_sync", Message: fmt.Sprintf("gateway: %s: the shell answers %q to echo up", name, r.Stdout)})
	}
	c.passed("shell", fmt.Sprintf("%s in %s", s.Shell(), r.Cwd))
	c.sftp(ctx, t)
	return nil
}

// check times and reports.
type check struct {
	report func(Step)

	connected atomic.Bool // what further connections take is no step any more

	mu   sync.Mutex // steps of a connection come from its goroutines
	last time.Time
}

func (c *check) passed(layer, detail string) { c.step(Step{Layer: layer, OK: true, Detail: detail}) }

func (c *check) failed(layer string, err error) error {
	c.step(Step{Layer: layer, Jump: ssh.FailedJump(err), Detail: err.Error(), Code: Code(err), Hint: Hint(err)})
	return err
}

func (c *check) step(s Step) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Duration = time.Since(c.last)
	c.last = time.Now()
	c.report(s)
}

// connect reports the layers of an SSH connection in their order, those of the
// hosts on the way first.
func (c *check) connect(ctx context.Context, g *Gateway, host hosts.Host) (transport.Transport, error) {
	if host.Local() {
		t, err := g.connect(ctx, host)
		if err != nil {
			return nil, c.failed(layerOf(err), err)
		}
		return t, nil
	}
	config, err := g.sshConfig(ctx, host)
	if err != nil {
		return nil, c.failed(layerOf(err), err)
	}
	var legs []*leg
	for hop := config; hop != nil; hop = hop.Jump {
		l := &leg{check: c, config: hop}
		if hop != config {
			l.jump = hop.Name
		}
		hop.HostKeys.Policy, hop.Trace = ssh.Strict, l.trace
		if n := len(legs); n > 0 {
			legs[n-1].before = l
		}
		legs = append(legs, l)
	}
	t, err := ssh.Dial(ctx, *config)
	if err != nil {
		for _, l := range legs {
			l.offered()
		}
		return nil, c.failed(layerOf(err), err)
	}
	c.connected.Store(true)
	return g.keep(t), nil
}

// A leg is the way to one of the machines between here and a host, or to the host.
type leg struct {
	check  *check
	config *ssh.Config
	jump   string // see Step
	before *leg   // nil: there is none
	told   atomic.Bool
	offers []string
}

func (l *leg) passed(layer, detail string) {
	l.told.Store(true)
	l.check.step(Step{Layer: layer, Jump: l.jump, OK: true, Detail: detail})
}

// trace takes a step. The server's version and the key exchange are told when the
// login is over, although they come before it.
func (l *leg) trace(s ssh.Step) {
	if l.check.connected.Load() {
		return
	}
	l.joined()
	switch s.Layer {
	case "tcp":
		if net.ParseIP(l.config.Addr) == nil && l.config.Jump == nil {
			l.passed("name", l.config.Addr)
		}
		l.passed("tcp", s.Detail)
	case "auth":
		l.offers = append(l.offers, s.Detail)
	case "kex":
		l.passed("kex", s.Detail)
		l.offered()
		l.passed("auth", "accepted as "+l.config.User)
	default:
		l.passed(s.Layer, s.Detail)
	}
}

// joined reports the machines on the way that were connected already: nothing else
// is told of those.
func (l *leg) joined() {
	if l.before != nil && !l.before.told.Load() {
		l.before.joined()
		l.before.passed("tcp", "connected already, for another host")
	}
}

// offered reports what was shown to log in.
func (l *leg) offered() {
	for _, offer := range l.offers {
		l.passed("auth", offer)
	}
	l.offers = nil
}

// layerOf returns the layer that an error of a connection belongs to.
func layerOf(err error) string {
	switch layer, _, _ := strings.Cut(Code(err), "."); layer {
	case "dns":
		return "name"
	case "tcp", "proxy", "hostkey", "auth":
		return layer
	case "secret":
		return "auth"
	case "ssh":
		return cmp.Or(ssh.FailedPhase(err), "banner")
	}
	return "inventory"
}

// sftp tells whether files can be moved.
func (c *check) sftp(ctx context.Context, t transport.Transport) {
	if _, remote := t.(transport.Remote); !remote {
		return // this machine: files are files
	}
	pipe, err := Subsystem(ctx, t, "sftp")
	if err == nil {
		err = greetSFTP(ctx, pipe)
	}
	if err != nil {
		_ = c.failed("sftp", err) // commands run without it
		return
	}
	c.passed("sftp", "available")
}

// sftpGrace is how long a server may take to say its first word.
const sftpGrace = 10 * time.Second

// greetSFTP waits for the server behind a pipe, which it closes. dropbear grants sftp before it
// knows whether it has a program for that.
func greetSFTP(ctx context.Context, pipe *transport.Pipe) error {
	defer pipe.Close()
	ctx, cancel := context.WithTimeout(ctx, sftpGrace)
	defer cancel()
	defer context.AfterFunc(ctx, func() { pipe.Close() })()
	// SSH_FXP_INIT of version 3 has SSH_FXP_VERSION for an answer (draft-ietf-secsh-filexfer-02, section 4).
	var head [5]byte
	_, err := io.WriteString(pipe.Stdin, "\x00\x00\x00\x05\x01\x00\x00\x00\x03")
	if err == nil {
		_, err = io.ReadFull(pipe.Stdout, head[:])
	}
	if err == nil && head[4] == 2 {
		return nil
	}
	return &transport.Error{
		Code: "file.no_subsystem", Message: "gateway: the server grants sftp, but its program does not answer as it should", Err: err,
		Hint: "look at Subsystem in sshd_config, or whether sftp-server is installed; what a profile writes without being asked breaks sftp too",
	}
}
