package gateway

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"gateway/hosts"
	"gateway/transport"
	"gateway/transport/local"
	"gateway/transport/ssh"
)

// DefaultPort is the port of a host that names none.
const DefaultPort = ssh.DefaultPort

// maxHops bounds a chain of bastions; a loop that no single file shows ends
// here.
const maxHops = 16

// connect reaches a host. The transport is the caller's to release.
func (g *Gateway) connect(ctx context.Context, host hosts.Host) (transport.Transport, error) {
	if host.Local() {
		return g.keep(local.New(local.Config{})), nil
	}
	config, err := g.sshConfig(ctx, host, 0)
	if err != nil {
		return nil, err
	}
	t, err := ssh.Dial(ctx, *config)
	if err != nil {
		return nil, err
	}
	return g.keep(t), nil
}

// keep notes what Close has to close.
func (g *Gateway) keep(t transport.Transport) transport.Transport {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open[t] = true
	return t
}

// release closes a transport.
func (g *Gateway) release(t transport.Transport) {
	g.mu.Lock()
	delete(g.open, t)
	g.mu.Unlock()
	t.Close()
}

// Login returns the account that a host is entered as.
func Login(host hosts.Host) string {
	if host.User != "" && !host.Local() {
		return host.User
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return os.Getenv("USER")
}

// sshConfig maps a host to what the transport wants to know. It is the only
// place that knows both.
func (g *Gateway) sshConfig(ctx context.Context, host hosts.Host, depth int) (*ssh.Config, error) {
	if depth > maxHops {
		return nil, &transport.Error{Code: "proxy.failed", Message: fmt.Sprintf("gateway: %s: more than %d bastions on the way", host.Name, maxHops), Hint: "look for a loop in jump"}
	}
	config := &ssh.Config{
		Name: host.Name, Addr: host.Address(), Port: host.Port, User: Login(host),
		Certificates:   host.Certificate,
		Agent:          agentSocket(host.Agent),
		IdentitiesOnly: host.IdentitiesOnly,
		ProxyCommand:   host.ProxyCommand,
		ConnectTimeout: host.ConnectTimeout,
		Keepalive:      host.Keepalive,
		MaxSessions:    host.MaxSessions,
		HostKeys:       g.hostKeys(host),
		Warn:           g.config.Warn,
	}
	if host.Keepalive == 0 && host.Origin("keepalive") != "" {
		config.Keepalive = -1
	}
	if host.Password != "" {
		config.Password = func(ctx context.Context) (string, error) { return secret(ctx, host.Password) }
	}
	if g.config.Ask != nil {
		config.Ask = func(ctx context.Context, q ssh.Question) (string, error) {
			return g.config.Ask(ctx, Question{Kind: q.Kind, Host: q.Host, User: q.User, Prompt: q.Prompt, Instruction: q.Instruction, Echo: q.Echo})
		}
	}
	var err error
	if config.Identities, err = identities(ctx, host); err != nil {
		return nil, err
	}
	config.Jump, err = g.jump(ctx, host, depth)
	return config, err
}

// jump maps the way to a host: each hop with its own settings. The first hop
// may itself be behind another one; what stands before a hop in the list
// replaces what its own settings say about the way to it.
func (g *Gateway) jump(ctx context.Context, host hosts.Host, depth int) (*ssh.Config, error) {
	var way *ssh.Config
	for _, entry := range host.Jump {
		jump, err := hosts.ParseJump(entry)
		if err != nil {
			return nil, err
		}
		hop, err := g.hop(ctx, jump)
		if err != nil {
			return nil, fmt.Errorf("gateway: jump of %s: %w", host.Name, err)
		}
		if way != nil {
			hop.Jump, hop.ProxyCommand = nil, ""
		}
		config, err := g.sshConfig(ctx, hop, depth+1)
		if err != nil {
			return nil, err
		}
		if way != nil {
			config.Jump = way
		}
		way = config
	}
	return way, nil
}

// hop returns the host that an entry of jump names: one of the inventory or of
// ssh_config, or else an address.
func (g *Gateway) hop(ctx context.Context, jump hosts.Jump) (hosts.Host, error) {
	host, err := g.Resolve(ctx, jump.Host)
	switch Code(err) {
	case "":
	case "inventory.unknown_host":
		host = hosts.Host{Name: jump.Host, Transport: "ssh"}
	default:
		return hosts.Host{}, err
	}
	if host.Local() {
		return hosts.Host{}, &transport.Error{Code: "inventory.invalid", Message: fmt.Sprintf("gateway: jump %s: this machine is no bastion", jump.Host)}
	}
	if jump.User != "" {
		host.User = jump.User
	}
	if jump.Port != 0 {
		host.Port = jump.Port
	}
	return host, nil
}

func agentSocket(agent hosts.Agent) string {
	switch agent {
	case hosts.AgentEnv:
		return os.Getenv("SSH_AUTH_SOCK")
	case hosts.AgentNone:
		return ""
	}
	return string(agent)
}

// defaultIdentities are the files that ssh tries, the stronger ones first.
var defaultIdentities = []string{"id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk"}

func identities(ctx context.Context, host hosts.Host) ([]ssh.Identity, error) {
	var passphrase func(context.Context, string) (string, error)
	if host.Passphrase != "" {
		passphrase = func(ctx context.Context, _ string) (string, error) { return secret(ctx, host.Passphrase) }
	}
	var list []ssh.Identity
	for _, entry := range host.Identity {
		identity := ssh.Identity{Path: entry, Passphrase: passphrase}
		if strings.HasPrefix(entry, "env:") || strings.HasPrefix(entry, "cmd:") {
			key, err := secret(ctx, entry)
			if err != nil {
				return nil, err
			}
			kind, _, _ := strings.Cut(entry, ":")
			identity = ssh.Identity{PEM: []byte(key + "\n"), Name: kind + ":…", Passphrase: passphrase}
			if kind == "env" {
				identity.Name = entry
			}
		}
		list = append(list, identity)
	}
	if len(list) == 0 {
		for _, name := range defaultIdentities {
			list = append(list, ssh.Identity{Path: home(".ssh", name), Optional: true, Passphrase: passphrase})
		}
	}
	return list, nil
}

func (g *Gateway) hostKeys(host hosts.Host) *ssh.HostKeys {
	keys := &ssh.HostKeys{
		Name: host.Name, Addr: host.Address(), Port: host.Port,
		Alias:   host.HostKeyAlias,
		HashNew: host.HashKnownHosts,
		Pins:    host.HostKey,
		Warn:    g.config.Warn,
	}
	if keys.Files = without(host.KnownHosts, "none"); len(host.KnownHosts) == 0 {
		keys.Files = []string{home(".ssh", "known_hosts")}
	}
	if len(keys.Files) > 0 {
		keys.Write = keys.Files[0]
	}
	if host.GlobalKnownHosts != nil {
		keys.Files = append(keys.Files, without(host.GlobalKnownHosts, "none")...)
	} else if len(host.KnownHosts) == 0 {
		keys.Files = append(keys.Files, "/etc/ssh/ssh_known_hosts")
	}
	policy := host.HostKeyPolicy
	if policy == "" {
		policy = g.config.HostKeyPolicy
	}
	switch policy {
	case "accept-new":
		keys.Policy = ssh.AcceptNew
	case "ask":
		keys.Policy = ssh.Ask
	}
	if g.config.Ask != nil {
		keys.Ask = g.confirmHostKey
	}
	return keys
}

// confirmHostKey asks a person whether a key is the right one. An answer may
// also be the fingerprint itself, as with ssh.
func (g *Gateway) confirmHostKey(ctx context.Context, q ssh.HostKeyQuestion) (bool, error) {
	answer, err := g.config.Ask(ctx, Question{
		Kind: AskHostKey, Host: q.Host, Echo: true,
		Instruction: fmt.Sprintf("The host key of %s (%s) is not known.\n%s key fingerprint is %s.\n", q.Host, q.Addr, q.Type, q.Fingerprint),
		Prompt:      "Trust it and go on (yes, no or the fingerprint)? ",
	})
	return answer == "yes" || answer == q.Fingerprint, err
}

// home returns a path below the home directory.
func home(path ...string) string {
	dir, err := os.UserHomeDir()
	if err != nil {
		dir = "/"
	}
	return filepath.Join(append([]string{dir}, path...)...)
}

func without(list []string, word string) []string {
	var kept []string
	for _, entry := range list {
		if entry != word {
			kept = append(kept, entry)
		}
	}
	return kept
}
