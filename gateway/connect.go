package gateway

import (
	"context"
	"fmt"
	"os"
	"os/user"

	"gateway/hosts"
	"gateway/transport"
	"gateway/transport/local"
	"gateway/transport/ssh"
)

// DefaultPort is the port of a host that names none.
const DefaultPort = ssh.DefaultPort

// A Caller is who wants a connection: what it needs on the way comes from
// there. Its functions may be called concurrently.
type Caller struct {
	// Ask puts a question to a person; nil means that nobody is there.
	Ask func(context.Context, Question) (string, error)
	// Secret resolves a reference; nil means [Secret].
	Secret func(ctx context.Context, reference string) (string, error)
	// Warn tells about something that stopped nothing; nil drops it.
	Warn func(message string)
}

// Dial connects to a target. The transport is the caller's to close.
func Dial(ctx context.Context, target Target, caller Caller) (transport.Transport, error) {
	if target.Local {
		return local.New(local.Config{}), nil
	}
	config, err := sshConfig(ctx, target, caller)
	if err != nil {
		return nil, err
	}
	t, err := ssh.Dial(ctx, *config)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// connect reaches a host. The transport is the caller's to release.
func (g *Gateway) connect(ctx context.Context, host hosts.Host) (transport.Transport, error) {
	target, err := g.Target(ctx, host)
	if err != nil {
		return nil, err
	}
	return g.dial(ctx, target)
}

func (g *Gateway) dial(ctx context.Context, target Target) (transport.Transport, error) {
	t, err := Dial(ctx, target, g.Caller())
	if err != nil {
		return nil, err
	}
	return g.keep(t), nil
}

// sshConfig resolves what the transport wants to know of a host.
func (g *Gateway) sshConfig(ctx context.Context, host hosts.Host) (*ssh.Config, error) {
	target, err := g.Target(ctx, host)
	if err != nil {
		return nil, err
	}
	return sshConfig(ctx, target, g.Caller())
}

// Caller returns who answers the questions of this gateway's connections.
func (g *Gateway) Caller() Caller { return Caller{Ask: g.config.Ask, Warn: g.config.Warn} }

// keep notes what Close has to close. Once it was called, that is now.
func (g *Gateway) keep(t transport.Transport) transport.Transport {
	g.mu.Lock()
	closed := g.open == nil
	if !closed {
		g.open[t] = true
	}
	g.mu.Unlock()
	if closed {
		t.Close()
	}
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
	return login()
}

// login returns the account of this process.
func login() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return os.Getenv("USER")
}

// sshConfig maps a target to what the transport wants to know. It is the only
// place that knows both.
func sshConfig(ctx context.Context, target Target, caller Caller) (*ssh.Config, error) {
	if caller.Secret == nil {
		caller.Secret = Secret
	}
	keys, err := hostKeys(target, caller)
	if err != nil {
		return nil, err
	}
	config := &ssh.Config{
		Name: target.Name, Addr: target.Addr, Port: target.Port, User: target.User,
		Certificates:   target.Certificates,
		Agent:          target.Agent,
		IdentitiesOnly: target.IdentitiesOnly,
		ProxyCommand:   target.ProxyCommand,
		ConnectTimeout: target.ConnectTimeout,
		Keepalive:      target.Keepalive,
		MaxSessions:    target.MaxSessions,
		HostKeys:       keys,
		Warn:           caller.Warn,
	}
	if target.Password != "" {
		config.Password = func(ctx context.Context) (string, error) { return caller.Secret(ctx, target.Password) }
	}
	if caller.Ask != nil {
		config.Ask = func(ctx context.Context, q ssh.Question) (string, error) { return caller.Ask(ctx, Question(q)) }
	}
	for _, entry := range target.Identities {
		identity, err := entry.load(ctx, target.Passphrase, caller)
		if err != nil {
			return nil, fmt.Errorf("gateway: identity of %s: %w", target.Name, err)
		}
		config.Identities = append(config.Identities, identity)
	}
	if target.Jump != nil {
		if config.Jump, err = sshConfig(ctx, *target.Jump, caller); err != nil {
			return nil, &ssh.JumpError{Host: target.Name, Jump: target.Jump.Name, Err: err}
		}
	}
	return config, nil
}

// load returns a key as the transport takes it. Files are left to the
// transport, which reads them when it needs them.
func (id Identity) load(ctx context.Context, passphrase string, caller Caller) (ssh.Identity, error) {
	identity := ssh.Identity{Path: id.Key, Optional: id.Optional}
	if passphrase != "" {
		identity.Passphrase = func(ctx context.Context, _ string) (string, error) { return caller.Secret(ctx, passphrase) }
	}
	if !hosts.IsKeyReference(id.Key) {
		return identity, nil
	}
	key, err := caller.Secret(ctx, id.Key)
	if err != nil {
		return ssh.Identity{}, err
	}
	identity.Path, identity.PEM, identity.Name = "", []byte(key+"\n"), hosts.ShowReference(id.Key)
	return identity, nil
}

func hostKeys(target Target, caller Caller) (*ssh.HostKeys, error) {
	rule := target.HostKeys
	keys := &ssh.HostKeys{
		Name: target.Name, Addr: target.Addr, Port: target.Port,
		Alias: rule.Alias, HashNew: rule.Hash, Pins: rule.Pins, Revoked: rule.Revoked,
		Files: rule.Files, Write: rule.Write, Why: rule.Why, Unlisted: rule.Unlisted,
		Warn: caller.Warn,
	}
	switch rule.Policy {
	case "accept-new":
		keys.Policy = ssh.AcceptNew
	case "ask":
		keys.Policy = ssh.Ask
	case "", "strict":
	default:
		return nil, &transport.Error{Code: "config.invalid", Message: fmt.Sprintf("ssh: %s: there is no host key policy %q", target.Name, rule.Policy), Hint: "take strict, ask or accept-new"}
	}
	if caller.Ask != nil {
		keys.Ask = caller.confirmHostKey
	}
	return keys, nil
}

// confirmHostKey asks a person whether a key is the right one. An answer may
// also be the fingerprint itself, as with ssh.
func (c Caller) confirmHostKey(ctx context.Context, q ssh.HostKeyQuestion) (bool, error) {
	answer, err := c.Ask(ctx, Question{
		Kind: AskHostKey, Host: q.Host, Echo: true,
		Instruction: fmt.Sprintf("The host key of %s (%s) is not known.\n%s key fingerprint is %s.\n", q.Host, q.Addr, q.Type, q.Fingerprint),
		Prompt:      "Trust it and go on (yes, no or the fingerprint)? ",
	})
	return answer == "yes" || answer == q.Fingerprint, err
}
