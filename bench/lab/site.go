package lab

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	gossh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"gateway/gateway"
	"gateway/hosts"
	"gateway/internal/sshdtest"
	"gateway/transport"
)

// A Host is a name of a site's server.
type Host struct {
	Name, Addr string
	Port       int
}

// Address is what to dial.
func (h Host) Address() string { return net.JoinHostPort(h.Addr, strconv.Itoa(h.Port)) }

// A Site is an SSH server, its names, and a home with everything that a client
// needs to reach it: all contenders have the same key and the same host keys.
type Site struct {
	*Lab
	Server *sshdtest.Server
	// Home is that of the clients. Its path is short: sockets are in it.
	Home  string
	Hosts []Host
	Key   gossh.Signer
}

// newSite writes the files of a site. If jump is not empty, it is the name of a bastion
// before all others; that is the server, too.
func (l *Lab) newSite(name string, server *sshdtest.Server, names []Host, jump string) (*Site, error) {
	s := &Site{Lab: l, Server: server, Home: filepath.Join(l.dir, name), Hosts: names, Key: server.Key.Signer}
	var known, plain, list, ansible strings.Builder
	inventory := fmt.Sprintf("defaults: {user: %s, identity: %s, known_hosts: %s, agent: false, shell: %s}\nhosts:\n",
		server.User, server.KeyFile, s.Path("known_hosts"), Shell)
	via, proxy := "", ""
	if jump != "" {
		first := names[0]
		inventory += fmt.Sprintf("  %s: {addr: %s, port: %d}\n", jump, first.Addr, first.Port)
		fmt.Fprintf(&plain, "Host %s\n  HostName %s\n  Port %d\n", jump, first.Addr, first.Port)
		via, proxy = ", jump: "+jump, "  ProxyJump "+jump+"\n"
	}
	for _, h := range names {
		known.WriteString(knownhosts.Line([]string{h.Address()}, server.HostKey) + "\n")
		fmt.Fprintf(&plain, "Host %s\n  HostName %s\n  Port %d\n%s", h.Name, h.Addr, h.Port, proxy)
		inventory += fmt.Sprintf("  %s: {addr: %s, port: %d%s}\n", h.Name, h.Addr, h.Port, via)
		list.WriteString(h.Name + "\n")
	}
	fmt.Fprintf(&plain, "Host *\n  User %s\n  IdentityFile %s\n  IdentitiesOnly yes\n  UserKnownHostsFile %s\n  GlobalKnownHostsFile none\n  LogLevel ERROR\n",
		server.User, server.KeyFile, s.Path("known_hosts"))
	shared := "Host *\n  ControlMaster auto\n  ControlPath " + s.Path("m-%n") + "\n  ControlPersist 600\n" + plain.String()
	ansible.WriteString(list.String() + "[all:vars]\nansible_python_interpreter=" + Python + "\n")
	for file, text := range map[string]string{
		"known_hosts": known.String(), "ssh_config": plain.String(), "ssh_shared": shared,
		"hosts": list.String(), "ansible": ansible.String(), ".config/gateway/hosts.yaml": inventory,
		".config/gateway/config.yaml": "ssh_config: off\nmax_sessions: 4096\nmax_sessions_per_host: 64\n",
	} {
		if err := os.MkdirAll(filepath.Dir(s.Path(file)), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(s.Path(file), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// First is the host of everything that needs but one.
func (s *Site) First() Host { return s.Hosts[0] }

// Path is that of a file in the home.
func (s *Site) Path(name string) string { return filepath.Join(s.Home, name) }

// Env is the environment of every contender.
func (s *Site) Env() []string {
	return []string{
		"HOME=" + s.Home, "PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TERM=dumb",
		"GATEWAY_SOCKET=" + s.Path("run/s"), "PYTHONDONTWRITEBYTECODE=1",
	}
}

// Command is a program with the site's home and environment.
func (s *Site) Command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Dir = s.Env(), s.Home
	return cmd
}

// Client is what x/crypto/ssh needs to enter.
func (s *Site) Client() *gossh.ClientConfig {
	return &gossh.ClientConfig{
		User: s.Server.User, Auth: []gossh.AuthMethod{gossh.PublicKeys(s.Key)},
		HostKeyCallback: gossh.FixedHostKey(s.Server.HostKey),
	}
}

// Gateway is the package's door to the site.
func (s *Site) Gateway() (*gateway.Gateway, error) {
	inventory, err := hosts.Load(s.Path(".config/gateway/hosts.yaml"))
	if err != nil {
		return nil, err
	}
	return gateway.New(gateway.Config{Inventory: inventory}), nil
}

// Dial makes a connection to the first host.
func (s *Site) Dial(ctx context.Context) (transport.Transport, error) {
	g, err := s.Gateway()
	if err != nil {
		return nil, err
	}
	host, err := g.Resolve(ctx, s.First().Name)
	if err != nil {
		return nil, err
	}
	target, err := g.Target(ctx, host)
	if err != nil {
		return nil, err
	}
	return gateway.Dial(ctx, target, gateway.Caller{})
}
