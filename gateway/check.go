package gateway

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
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
	OK    bool
	// Detail says what was found, or what went wrong.
	Detail string
	// Code and Hint are of what went wrong.
	Code, Hint string
	// Duration is the time since the step before.
	Duration time.Duration
}

// Check walks the way to a host layer by layer, up to a shell that answers, and
// reports each step as it is known. The first layer that fails ends it, and is
// the error. Missing sftp is reported, and is none. No host key is recorded, and
// nobody is asked about one, whatever the hosts' policies say.
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

	mu   sync.Mutex // steps of a connection come from its goroutines
	last time.Time
}

func (c *check) passed(layer, detail string) { c.step(Step{Layer: layer, OK: true, Detail: detail}) }

func (c *check) failed(layer string, err error) error {
	c.step(Step{Layer: layer, Detail: err.Error(), Code: Code(err), Hint: Hint(err)})
	return err
}

func (c *check) step(s Step) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Duration = time.Since(c.last)
	c.last = time.Now()
	c.report(s)
}

// connect reports the layers of an SSH connection in their order, although the
// server's version and the key exchange are known only afterwards.
func (c *check) connect(ctx context.Context, g *Gateway, host hosts.Host) (transport.Transport, error) {
	if host.Local() {
		return g.connect(ctx, host)
	}
	config, err := g.sshConfig(ctx, host)
	if err != nil {
		return nil, c.failed(layerOf(err), err)
	}
	for hop := config; hop != nil; hop = hop.Jump {
		hop.HostKeys.Policy = ssh.Strict
	}
	var auth []string
	config.Trace = func(s ssh.Step) {
		switch s.Layer {
		case "tcp":
			if net.ParseIP(config.Addr) == nil {
				c.passed("name", config.Addr)
			}
			c.passed("tcp", s.Detail)
		case "auth":
			auth = append(auth, s.Detail)
		default:
			c.passed(s.Layer, s.Detail)
		}
	}
	t, err := ssh.Dial(ctx, *config)
	for _, offer := range auth {
		c.passed("auth", offer)
	}
	if err != nil {
		return nil, c.failed(layerOf(err), err)
	}
	c.passed("auth", "accepted as "+config.User)
	return g.keep(t), nil
}

// layerOf returns the layer that an error of a connection belongs to.
func layerOf(err error) string {
	code := Code(err)
	switch layer, _, _ := strings.Cut(code, "."); layer {
	case "dns":
		return "name"
	case "tcp", "proxy", "hostkey", "auth":
		return layer
	case "secret":
		return "auth"
	case "ssh":
		if code == "ssh.no_common_algorithm" {
			return "kex"
		}
		return "banner"
	}
	return "inventory"
}

// sftp tells whether files can be moved.
func (c *check) sftp(ctx context.Context, t transport.Transport) {
	if _, remote := t.(transport.Remote); !remote {
		return // this machine: files are files
	}
	pipe, err := Subsystem(ctx, t, "sftp")
	if err != nil {
		_ = c.failed("sftp", err) // commands run without it
		return
	}
	pipe.Close()
	c.passed("sftp", "available")
}
