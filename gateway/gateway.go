// Package gateway is the one door: it knows the hosts, reaches them, and runs
// commands there. The command line goes through it, and so does everything
// else that runs something somewhere; nothing reaches a transport but from
// here.
package gateway

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"gateway/hosts"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/ssh"
)

// Config says which hosts there are and who can be asked. Its functions may be
// called concurrently.
type Config struct {
	// Inventory holds the hosts; nil means localhost alone.
	Inventory *hosts.Inventory
	// SSHConfig fills in what the inventory leaves out; nil means off.
	SSHConfig *hosts.SSHConfig
	// HostKeyPolicy is for hosts that name none: "strict" (also if empty), "ask"
	// or "accept-new".
	HostKeyPolicy string
	// Strict says what makes every host's policy strict, whatever inventory and
	// ssh_config say, such as "CI=true"; empty means that nothing does.
	Strict string
	// Ask puts a question to a person; nil means that nobody is there.
	Ask func(context.Context, Question) (string, error)
	// Warn tells a person about something that stopped nothing; nil drops it.
	Warn func(message string)
	// Warm returns a connection to a target that somebody else has open; nil
	// means that there never is one. Closing it must leave that connection open.
	Warm func(context.Context, Target) (transport.Transport, bool)
	// SpoolDir is where long output goes; empty means nowhere.
	SpoolDir string
	// LedgerDir is where open sessions are noted, so that a later one can end
	// what a silent link left on a machine; empty means nowhere.
	LedgerDir string
}

// The kinds of [Question].
const (
	AskPassphrase = ssh.AskPassphrase // of a key
	AskPassword   = ssh.AskPassword   // of an account
	AskChallenge  = ssh.AskChallenge  // of keyboard-interactive authentication
	AskHostKey    = "hostkey"         // answered "yes" or "no"
	AskCommand    = "command"         // what a command that runs wants to know
)

// A Question is something that only a person can answer, with the fields of an
// [ssh.Question]. Except for a host key's, every answer is a secret.
type Question struct {
	Kind string `json:"kind,omitempty"`
	Host string `json:"host,omitempty"`
	User string `json:"user,omitempty"`
	// Prompt and Instruction may come from a machine: control characters in
	// them are not to be shown.
	Prompt      string `json:"prompt,omitempty"`
	Instruction string `json:"instruction,omitempty"`
	// Echo: the answer may be shown while it is typed.
	Echo bool `json:"echo,omitempty"`
}

// Gateway runs commands on hosts. Methods may be called concurrently.
type Gateway struct {
	config Config
	spools *spools
	ledger session.Ledger
	told   sync.Map // the warnings about ssh_config that were given

	mu   sync.Mutex
	open map[transport.Transport]bool // guarded by mu; nil: closed
}

// New returns a gateway. It opens nothing.
func New(config Config) *Gateway {
	if config.Inventory == nil {
		config.Inventory = hosts.New()
	}
	if config.Warn == nil {
		config.Warn = func(string) {}
	}
	return &Gateway{config: config, spools: &spools{dir: config.SpoolDir, warn: config.Warn}, ledger: NewLedger(config.LedgerDir), open: map[transport.Transport]bool{}}
}

// Inventory returns the hosts.
func (g *Gateway) Inventory() *hosts.Inventory { return g.config.Inventory }

// Close closes what is open, and thereby hangs up what still runs. It may be
// called while Exec or Shell does. What is opened behind it is closed at once.
func (g *Gateway) Close() {
	g.mu.Lock()
	transports := slices.Collect(maps.Keys(g.open))
	g.open = nil
	g.mu.Unlock()
	var all sync.WaitGroup
	for _, t := range transports {
		all.Go(func() { t.Close() })
	}
	all.Wait()
}

// Resolve returns a host with all its settings: what the inventory says about
// it, filled up from ssh_config, which may also know a name of its own. The
// error matches [hosts.ErrUnknown] for a name that neither knows.
func (g *Gateway) Resolve(ctx context.Context, name string) (hosts.Host, error) {
	return g.ResolveAs(ctx, name, "")
}

// ResolveAs is [Gateway.Resolve] for a host that is to be entered as USER, if
// that is not empty: ssh_config may say other things about other accounts.
func (g *Gateway) ResolveAs(ctx context.Context, name, user string) (hosts.Host, error) {
	host, err := g.bare(name)
	if err != nil {
		return hosts.Host{}, err
	}
	if err := enterAs(&host, user); err != nil {
		return hosts.Host{}, err
	}
	return g.fill(ctx, host)
}

// bare returns a host with what the inventory says about it. Of one that
// ssh_config alone knows that is nothing.
func (g *Gateway) bare(name string) (hosts.Host, error) {
	host, err := g.config.Inventory.Host(name)
	if g.config.SSHConfig == nil || !errors.Is(err, hosts.ErrUnknown) {
		return host, err
	}
	known, failed := g.config.SSHConfig.Knows(name)
	switch {
	case failed != nil:
		return hosts.Host{}, failed
	case !known:
		aliases, _ := g.config.SSHConfig.Aliases() // a file that can't be read has failed above
		return hosts.Host{}, g.config.Inventory.Unknown(name, aliases)
	}
	return hosts.Host{Name: name, Transport: "ssh"}, nil
}

// fill returns a host with what it leaves out taken from ssh_config, whose Match
// lines see what it has.
func (g *Gateway) fill(ctx context.Context, host hosts.Host) (hosts.Host, error) {
	if g.config.SSHConfig == nil || host.Local() {
		return host, nil
	}
	settings, err := g.config.SSHConfig.Resolve(ctx, host.Name, hosts.Given{User: host.User, Port: host.Port, HostName: host.Addr})
	if err != nil {
		return hosts.Host{}, err
	}
	for _, warning := range settings.Warnings {
		if _, told := g.told.LoadOrStore(warning, true); !told {
			g.config.Warn(warning)
		}
	}
	return settings.Fill(host), nil
}

// coded is what the errors of all layers have in common.
type coded interface {
	ErrorCode() string
	ErrorHint() string
}

// Code returns the error code of the contract, "internal" for an error without
// one, and the empty string for nil.
func Code(err error) string {
	var c coded
	switch {
	case err == nil:
		return ""
	case errors.As(err, &c):
		return c.ErrorCode()
	case errors.Is(err, transport.ErrClosed): // by this side, as at a second signal
		return "session.closed"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "cmd.interrupted"
	}
	return "internal"
}

// Hint returns the remedy that an error names, or the empty string.
func Hint(err error) string {
	var c coded
	if errors.As(err, &c) {
		return c.ErrorHint()
	}
	return ""
}
