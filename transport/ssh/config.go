// Package ssh reaches machines over the SSH protocol: through bastions or a
// proxy command, with whatever credentials the account has, and with every
// host key checked.
//
// [Dial] returns a [Transport], which opens its programs on shared connections
// without waiting for replies that it can do without: one round trip for the
// channel, one for the first output.
//
// Every call of golang.org/x/crypto/ssh can block for ever on a silent peer.
// Here each of them has a timer of its own, and whatever waits for the network
// is let go by Close or by the end of its context.
package ssh

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"gateway/transport"
)

// The values that stand in for a zero field of a [Config].
const (
	DefaultPort           = 22
	DefaultConnectTimeout = 10 * time.Second
	DefaultKeepalive      = 15 * time.Second
	// DefaultMaxSessions is sshd's own default (sshd_config, MaxSessions).
	DefaultMaxSessions = 10
)

// A Config says how to reach and enter one machine. Its functions may be
// called from several goroutines, and may take as long as a person needs: the
// timeout of the connection stands still meanwhile.
type Config struct {
	// Name is the machine as the user knows it. It stands in every message.
	Name string
	// Addr is a name or an address, without a port; empty means Name.
	Addr string
	Port int
	// User is the account to enter. It must be set.
	User string

	// Identities are the private keys to show, in this order.
	Identities []Identity
	// Certificates are files with further certificates. Those beside an
	// identity (id_ed25519-cert.pub) are found without being named.
	Certificates []string
	// Agent is the socket of an SSH agent; empty means none is asked.
	Agent string
	// IdentitiesOnly: of the agent's keys only those that are also among
	// Identities are shown (ssh_config, IdentitiesOnly).
	IdentitiesOnly bool
	// Password resolves the account's password; nil means there is none. It is
	// shown once at most.
	Password func(context.Context) (string, error)
	// Ask puts a question to a person; nil means that nobody is there.
	Ask func(context.Context, Question) (string, error)

	// HostKeys decides whether the machine is the right one. It must be set.
	HostKeys *HostKeys

	// Jump is the machine through which this one is reached; that one may name
	// the next. Machines with an equal Jump share one connection to it.
	Jump *Config
	// ProxyCommand is run by sh -c, and its standard input and output are the
	// connection. %h, %p, %r, %n, %k and %% stand for address, port, user, name,
	// HostKeyAlias (or else the name) and a percent sign; others are refused. It
	// excludes Jump.
	ProxyCommand string

	// ConnectTimeout covers the way to this machine alone, that is TCP or
	// tunnel, key exchange and authentication, and each opening of a channel.
	// The time that Ask, Password and their like take does not count.
	ConnectTimeout time.Duration
	// Keepalive is how long the peer may be silent before it is asked for a
	// sign of life; three in a row that stay unanswered end the connection.
	// Negative means never.
	Keepalive time.Duration
	// MaxSessions is how many channels the machine allows on a connection. Two
	// of them are kept for [Transport.Subsystem] and [Transport.Whole].
	MaxSessions int

	// Trace is told of each step that went well on the way to this machine; nil
	// drops it.
	Trace func(Step)
	// Warn tells a person about something that did not stop the connection; nil
	// drops it.
	Warn func(message string)

	at   string // what to dial in place of Addr and Port, if not empty
	kind string // the type of host key to ask for first; empty: what is known decides
}

// An Identity is a private key, or the public half of one that an agent holds.
type Identity struct {
	// Path is the key's file.
	Path string
	// PEM is the key itself, in place of a file.
	PEM []byte
	// Name is what messages call the key; empty means Path. It must be set
	// along with PEM.
	Name string
	// Optional: a file that does not exist, or is no key for us, is no failure.
	Optional bool
	// Passphrase resolves the passphrase of an encrypted key; nil means that
	// Config.Ask is to be asked. It is called only once the machine wants a
	// signature from this very key.
	Passphrase func(ctx context.Context, name string) (string, error)
}

func (id Identity) name() string { return cmp.Or(id.Name, id.Path) }

// What a [Question] is about.
const (
	AskPassphrase = "passphrase"
	AskPassword   = "password"
	AskChallenge  = "challenge" // keyboard-interactive, RFC 4256
)

// A Question is something that only a person can answer. Every answer is a
// secret.
type Question struct {
	// Kind is AskPassphrase, AskPassword or AskChallenge.
	Kind string
	// Host and User are for whom it is asked.
	Host, User string
	// Prompt is the text to show. With AskChallenge it comes from the machine,
	// as does Instruction: strip control characters before showing them.
	Prompt      string
	Instruction string
	// Echo: the answer may be shown while it is typed.
	Echo bool
}

// A Step is something that went well on the way to a machine; see
// Config.Trace.
type Step struct {
	// Layer is tcp, banner, kex, hostkey or auth.
	Layer string
	// Detail is for a person: the address, the server's version, the
	// fingerprint, a key that is offered.
	Detail string
}

// withDefaults fills what the caller left out, along the whole chain.
func (c Config) withDefaults() Config {
	c.Addr, c.Name = cmp.Or(c.Addr, c.Name), cmp.Or(c.Name, c.Addr)
	c.Port = cmp.Or(c.Port, DefaultPort)
	if c.ConnectTimeout <= 0 {
		c.ConnectTimeout = DefaultConnectTimeout
	}
	c.Keepalive = cmp.Or(c.Keepalive, DefaultKeepalive)
	if c.MaxSessions <= 0 {
		c.MaxSessions = DefaultMaxSessions
	}
	if c.Jump != nil {
		c.Jump = new(c.Jump.withDefaults())
	}
	return c
}

// MaxHops is how many machines there may be on a way, the last one included. It
// ends a chain of bastions that leads to itself.
const MaxHops = 16

// check refuses what no connection could come of.
func (c Config) check() error {
	invalid := func(text string) error {
		return &transport.Error{Code: codeConfig, Message: "ssh: " + text}
	}
	hop := &c
	for range MaxHops {
		switch {
		case hop.Addr == "" && hop.Name == "":
			return invalid("host without a name and an address")
		case hop.User == "":
			return &transport.Error{Code: codeConfig, Message: "ssh: " + hop.Name + ": no user", Hint: "set user for this host: the account here has no name to take"}
		case hop.Port < 0 || hop.Port > 65535:
			return invalid(hop.Name + ": no port has the number " + strconv.Itoa(hop.Port))
		case hop.HostKeys == nil:
			return invalid(hop.Name + ": no host key check")
		case hop.Jump != nil && hop.ProxyCommand != "":
			return invalid(hop.Name + ": jump and proxy_command exclude each other")
		}
		if hop = hop.Jump; hop == nil {
			return nil
		}
	}
	return invalid(c.Name + ": more than " + strconv.Itoa(MaxHops) + " machines on the way")
}

func (c *Config) hostPort() string { return net.JoinHostPort(c.Addr, strconv.Itoa(c.Port)) }

// where is the machine in a message: as the user knows it, and as it was
// reached if that says more.
func (c *Config) where() string {
	text := c.Name
	if c.Name != c.Addr || c.Port != DefaultPort {
		text += " (" + c.hostPort() + ")"
	}
	if c.Jump != nil {
		text += " through " + c.Jump.Name
	}
	return text
}

func (c *Config) trace(layer, format string, args ...any) {
	if c.Trace != nil {
		c.Trace(Step{layer, fmt.Sprintf(format, args...)})
	}
}

func (c *Config) warn(message string) {
	if c.Warn != nil {
		c.Warn(message)
	}
}
