package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"time"

	"gateway/hosts"
	"gateway/transport"
	"gateway/transport/ssh"
)

// Target is how a machine is reached: a host with all that its inventory,
// ssh_config, environment and home say about the way to it. It is plain data
// without a secret; whoever has it needs none of these to connect. A number that
// is 0 stands for the default of [ssh.Config].
type Target struct {
	Name string `json:"name"`
	// Local is this machine, reached without SSH. Nothing else is set then.
	Local bool   `json:"local,omitempty"`
	Addr  string `json:"addr,omitempty"`
	Port  int    `json:"port,omitempty"`
	User  string `json:"user,omitempty"`

	Identities     []Identity `json:"identities,omitempty"`
	Certificates   []string   `json:"certificates,omitempty"`
	Agent          string     `json:"agent,omitempty"` // its socket
	IdentitiesOnly bool       `json:"identities_only,omitempty"`
	// Password and Passphrase are references; see [hosts.ParseReference].
	Password   string `json:"password,omitempty"`
	Passphrase string `json:"passphrase,omitempty"`

	HostKeys HostKeyRule `json:"host_keys"`

	Jump         *Target `json:"jump,omitempty"`
	ProxyCommand string  `json:"proxy_command,omitempty"`

	ConnectTimeout time.Duration `json:"connect_timeout,omitempty"`
	Keepalive      time.Duration `json:"keepalive,omitempty"` // negative: never
	MaxSessions    int           `json:"max_sessions,omitempty"`
}

// Identity is a private key: a file, or a reference ("env:NAME", "cmd:…").
type Identity struct {
	Key string `json:"key"`
	// Optional: a file that does not exist, or is no key for us, is no failure.
	Optional bool `json:"optional,omitempty"`
}

// HostKeyRule says which key a machine must show.
type HostKeyRule struct {
	Alias string   `json:"alias,omitempty"`
	Files []string `json:"files,omitempty"`
	Write string   `json:"write,omitempty"` // where new ones go; "none": nowhere
	Hash  bool     `json:"hash,omitempty"`
	Pins  []string `json:"pins,omitempty"`
	// Revoked is a file of keys that are never accepted.
	Revoked string `json:"revoked,omitempty"`
	Policy  string `json:"policy"` // strict, ask or accept-new
	// Why says what has made another policy strict; empty if nothing has.
	Why string `json:"why,omitempty"`
	// Unlisted: neither inventory nor ssh_config has the host, a jump's address.
	Unlisted bool `json:"unlisted,omitempty"`
}

// Key tells targets apart: those with an equal Key may share a connection.
// Anything that changes who is let in, or which machine is believed, changes it.
func (t Target) Key() string {
	data, _ := json.Marshal(t.withoutWhy()) // plain data: it can't fail
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// withoutWhy returns the target without what is for messages only.
func (t Target) withoutWhy() Target {
	t.HostKeys.Why, t.HostKeys.Unlisted = "", false
	if t.Jump != nil {
		t.Jump = new(t.Jump.withoutWhy())
	}
	return t
}

// Login returns the account that the target is entered as.
func (t Target) Login() string { return cmp.Or(t.User, login()) }

// Target resolves how a host is reached.
func (g *Gateway) Target(ctx context.Context, host hosts.Host) (Target, error) {
	return g.target(ctx, host, 0)
}

func (g *Gateway) target(ctx context.Context, host hosts.Host, depth int) (Target, error) {
	if host.Local() {
		return Target{Name: host.Name, Local: true}, otherUser(host)
	}
	if depth >= ssh.MaxHops { // a loop that no single file shows ends here
		return Target{}, &transport.Error{Code: "proxy.failed", Message: fmt.Sprintf("gateway: %s: more than %d machines on the way", host.Name, ssh.MaxHops), Hint: "look for a loop in jump"}
	}
	t := Target{
		Name: host.Name, Addr: host.Address(), Port: host.Port, User: Login(host),
		Identities:     identities(host),
		Certificates:   host.Certificate,
		Agent:          agentSocket(host.Agent),
		IdentitiesOnly: host.IdentitiesOnly,
		Password:       host.Password, Passphrase: host.Passphrase,
		HostKeys:       g.hostKeyRule(host),
		ProxyCommand:   host.ProxyCommand,
		ConnectTimeout: host.ConnectTimeout,
		Keepalive:      host.Keepalive,
		MaxSessions:    host.MaxSessions,
	}
	if host.Keepalive == 0 && host.Origin("keepalive") != "" {
		t.Keepalive = -1
	}
	var err error
	t.Jump, err = g.jump(ctx, host, depth)
	return t, err
}

// jump resolves the way to a host: each hop with its own settings. The first hop
// may itself be behind another one; what stands before a hop in the list
// replaces what its own settings say about the way to it.
func (g *Gateway) jump(ctx context.Context, host hosts.Host, depth int) (*Target, error) {
	var way *Target
	for _, entry := range host.Jump {
		jump, err := hosts.ParseJump(entry)
		if err != nil {
			return nil, &transport.Error{Code: "inventory.invalid", Message: fmt.Sprintf("gateway: jump of %s: %v", host.Name, err)}
		}
		hop, err := g.hop(ctx, jump)
		if err != nil {
			return nil, fmt.Errorf("gateway: jump of %s: %w", host.Name, err)
		}
		if way != nil {
			hop.Jump, hop.ProxyCommand = nil, ""
		}
		t, err := g.target(ctx, hop, depth+1)
		if err != nil {
			return nil, err
		}
		if way != nil {
			t.Jump = way
		}
		way = &t
	}
	return way, nil
}

// hop returns the host that an entry of jump names: one of the inventory or of
// ssh_config, or else an address, with what ssh_config says about every host.
func (g *Gateway) hop(ctx context.Context, jump hosts.Jump) (hosts.Host, error) {
	host, err := g.bare(jump.Host)
	tunnel := err == nil && host.Local() && jump.Port != 0 // localhost:2222 leads to another machine
	if tunnel || errors.Is(err, hosts.ErrUnknown) {
		host, err = hosts.Host{Name: jump.Host, Transport: "ssh"}, nil
	}
	if err != nil {
		return hosts.Host{}, err
	}
	if host.Local() {
		return hosts.Host{}, &transport.Error{Code: "inventory.invalid", Message: jump.Host + ": this machine is no bastion", Hint: "the end of a tunnel on it is one: name its port, too"}
	}
	if jump.User != "" {
		host.User = jump.User
	}
	if jump.Port != 0 {
		host.Port = jump.Port
	}
	return g.fill(ctx, host) // as for ssh, what Host * says is for a bastion too
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

// identities returns the keys to show. A list that is empty but not nil was set
// to none.
func identities(host hosts.Host) []Identity {
	var list []Identity
	for _, entry := range host.Identity {
		list = append(list, Identity{Key: entry})
	}
	if host.Identity == nil {
		for _, name := range defaultIdentities {
			list = append(list, Identity{Key: home(".ssh", name), Optional: true})
		}
	}
	return list
}

// hostKeyRule puts the files together as ssh does: those of the user, of which
// the first is written to, and the global ones, unless the inventory says which
// files there are. A list that is empty but not nil was set to none.
func (g *Gateway) hostKeyRule(host hosts.Host) HostKeyRule {
	rule := HostKeyRule{Alias: host.HostKeyAlias, Hash: host.HashKnownHosts, Pins: host.HostKey, Revoked: host.RevokedHostKeys, Write: "none"}
	user, global := host.KnownHosts, host.GlobalKnownHosts
	if user == nil {
		user = []string{home(".ssh", "known_hosts"), home(".ssh", "known_hosts2")}
	}
	if global == nil {
		global = []string{"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"}
	}
	if host.KnownHosts != nil && host.Origin("known_hosts") != hosts.SSHConfigOrigin {
		global = nil
	}
	if len(user) > 0 {
		rule.Write = user[0]
	}
	rule.Files = slices.Concat(user, global)
	_, err := g.bare(host.Name)
	rule.Unlisted = errors.Is(err, hosts.ErrUnknown)
	rule.Policy = cmp.Or(host.HostKeyPolicy, g.config.HostKeyPolicy, "strict")
	if g.config.Strict != "" && rule.Policy != "strict" {
		rule.Policy, rule.Why = "strict", g.config.Strict
	}
	return rule
}

// home returns a path below the home directory: the account's, where a service has
// no HOME. The current directory, which may be anybody's, is none.
func home(path ...string) string {
	dir, _ := os.UserHomeDir()
	if !filepath.IsAbs(dir) {
		if u, err := user.Current(); err == nil {
			dir = u.HomeDir
		}
	}
	if !filepath.IsAbs(dir) {
		dir = "/"
	}
	return filepath.Join(append([]string{dir}, path...)...)
}
