// Package lab is where contenders are measured: real SSH servers, links that
// delay, and a home for the clients. It belongs to one run and leaves nothing.
package lab

import (
	"fmt"
	"os"
	"time"

	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
)

// Shell is the shell of the account, of the floor and of every session: the
// fastest one, so that what the contenders add shows most.
const Shell = "dash"

// Python is the interpreter that Debian's packages are for.
const Python = "/usr/bin/python3"

// Options say what is already there.
type Options struct {
	// Program is gateway, Drivers the directory of the Python drivers, Modules
	// that of the MCP servers from npm.
	Program, Drivers, Modules string
	// Names is how many names the near server has in Many.
	Names int
}

// A Lab is a set of sites.
type Lab struct {
	Options
	bed *bed
	dir string

	// Near is on the loopback, and Many are hundreds of names of the same server.
	Near, Many *Site
	// Far is behind a link that delays; SetTrip sets by how much.
	Far *Site
	// Behind is the same server, through a bastion that is as far away.
	Behind *Site
	// Link says what delays: a pair of network devices, or a proxy.
	Link string
	link link
}

// A link delays what goes to the far site and what comes from it.
type link interface {
	// setDelay sets the delay of each direction.
	setDelay(time.Duration)
}

// Start starts the servers. Without a far site everything else can still be
// measured; Link then says why.
func Start(options Options) (*Lab, error) {
	dir, err := os.MkdirTemp("", "gwb") // short: OpenSSH's control sockets are below it
	if err != nil {
		return nil, err
	}
	l := &Lab{Options: options, dir: dir, bed: &bed{dir: dir}}
	if err := l.start(); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (l *Lab) start() error {
	server, err := l.server(sshdtest.Options{Addresses: addresses, Config: crowd})
	if err != nil {
		return err
	}
	names := make([]Host, max(l.Names, 1))
	for i := range names {
		names[i] = Host{fmt.Sprintf("h%03d", i), fmt.Sprintf("127.0.0.%d", i%addresses+1), server.Port}
	}
	// Whoever is to enter one host reads no files about hundreds.
	if l.Near, err = l.newSite("near", server, names[:1], ""); err != nil {
		return err
	}
	if l.Many, err = l.newSite("many", server, names, ""); err != nil {
		return err
	}
	return l.startFar()
}

// addresses is how many of the loopback's the near server listens on.
const addresses = 16

// crowd lets hundreds of names of one server be entered at once, as hundreds of
// servers could be.
var crowd = []string{"MaxStartups 2000", "MaxSessions 10"}

func (l *Lab) startFar() error {
	opts := sshdtest.Options{Config: crowd}
	wire, err := newWire(l.bed)
	if err == nil {
		opts.Wrap = wire.enter
		opts.Config = append([]string{fmt.Sprintf("ListenAddress %s:%d", farAddr, farPort)}, crowd...)
	}
	server, failed := l.server(opts)
	if failed != nil {
		return failed
	}
	far := Host{"far", farAddr, farPort}
	if err == nil {
		l.link, l.Link = wire, "two TUN devices between two network namespaces"
	} else {
		proxy, failed := try(func() *netsim.Proxy { return netsim.Start(l.bed, server.Addr, 0) })
		if failed != nil {
			return failed
		}
		far.Addr, far.Port = "127.0.0.1", proxy.Port()
		l.link, l.Link = slow{proxy}, fmt.Sprintf("a delaying proxy on loopback, with which TCP's own handshake takes no time (no TUN devices: %v)", err)
	}
	if l.Far, failed = l.newSite("far", server, []Host{far}, ""); failed == nil {
		l.Behind, failed = l.newSite("behind", server, []Host{far}, "bastion")
	}
	return failed
}

type slow struct{ *netsim.Proxy }

func (s slow) setDelay(d time.Duration) { s.SetDelay(d) }

// Default starts one more server, with sshd's own limits, and gives it names.
func (l *Lab) Default(name string, count int) (*Site, error) {
	server, err := l.server(sshdtest.Options{})
	if err != nil {
		return nil, err
	}
	names := make([]Host, count)
	for i := range names {
		names[i] = Host{fmt.Sprintf("h%03d", i), "127.0.0.1", server.Port}
	}
	return l.newSite(name, server, names, "")
}

// server starts an sshd whose account has the lab's shell, where that can be
// had.
func (l *Lab) server(opts sshdtest.Options) (*sshdtest.Server, error) {
	if os.Getuid() == 0 {
		opts.Account = &sshdtest.Account{Shell: "/bin/" + Shell}
	}
	s, err := try(func() *sshdtest.Server { return sshdtest.Start(l.bed, opts) })
	if err != nil && opts.Account != nil { // a container may have no namespaces
		opts.Account = nil
		s, err = try(func() *sshdtest.Server { return sshdtest.Start(l.bed, opts) })
	}
	return s, err
}

// SetTrip sets how long a round trip to the far site takes.
func (l *Lab) SetTrip(d time.Duration) { l.link.setDelay(d / 2) }

// Carried is how many bytes have gone to the far site and come from it. It is
// known of a proxy alone.
func (l *Lab) Carried() (up, down int64) {
	if s, ok := l.link.(slow); ok {
		return s.Bytes(netsim.Up), s.Bytes(netsim.Down)
	}
	return 0, 0
}

// Defer calls f at the lab's end.
func (l *Lab) Defer(f func()) { l.bed.Cleanup(f) }

// Close ends the servers and removes every file.
func (l *Lab) Close() {
	l.bed.close()
	os.RemoveAll(l.dir)
}
