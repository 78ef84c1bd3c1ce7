package gateway

import (
	"cmp"
	"context"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/hosts"
	"gateway/session"
	"gateway/transport"
)

// Options are for the session that [Gateway.Open] or [Gateway.Exec] opens. All are
// optional.
type Options struct {
	// Shell, Login and User override the host's.
	Shell string
	Login bool
	User  string
	// Cwd is where the session starts, in place of the host's. Env is added to the
	// host's.
	Cwd string
	Env map[string]string
	// Sudo makes the session another user's: SudoUser, else the host's sudo.user,
	// else root.
	Sudo     bool
	SudoUser string
	// Password is asked for sudo's password where the inventory has none.
	Password func(context.Context) (string, error)
	// Typed is told the passwords of the inventory that are typed to sudo, or to
	// a command's prompt, so that they can be kept out of what is shown.
	Typed func(secret string)
	// Size and Term describe the terminal of whoever looks; an empty Term means
	// nobody does.
	Size transport.Size
	Term string
}

// A Session is a shell on one host that outlives its commands. Its methods must
// not be called concurrently.
type Session struct {
	gateway   *Gateway
	name      string
	host      hosts.Host
	options   Options
	transport transport.Transport
	borrowed  bool             // the transport is another Session's
	group     string           // what shares its connection belongs to, see [transport.Together]; empty: its own id
	connect   time.Duration    // of the first command
	engine    *session.Session // nil: not opened
}

// Open opens a session on a host. The context covers the opening only.
func (g *Gateway) Open(ctx context.Context, name string, options Options) (*Session, error) {
	s, err := g.begin(ctx, name, options)
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// begin is Open, but the session is there beside an error: it has what is known
// by then, and is to be closed.
func (g *Gateway) begin(ctx context.Context, name string, options Options) (*Session, error) {
	s := &Session{gateway: g, name: name, options: options}
	host, err := g.ResolveAs(ctx, name, options.User)
	if err != nil {
		return s, err
	}
	s.host = host
	begun := time.Now()
	s.engine, s.transport, err = g.openSession(ctx, host, s.config())
	if s.transport != nil {
		s.connect = time.Since(begun)
	}
	return s, err
}

func (s *Session) config() session.Config {
	config := s.gateway.sessionConfig(s.host, s.options)
	config.Group = s.group
	if s.options.Sudo {
		config.Sudo, config.OpenTimeout = s.gateway.sudo(s.host, s.options), max(config.OpenTimeout, sudoTimeout)
	}
	return config
}

// Beside opens another session on the same connection, which must be closed
// before this one is.
func (s *Session) Beside(ctx context.Context, options Options) (*Session, error) {
	other := &Session{gateway: s.gateway, name: s.name, host: s.host, options: options, transport: s.transport, borrowed: true, group: cmp.Or(s.group, s.engine.ID())}
	begun := time.Now()
	engine, err := session.Open(ctx, s.transport, other.config())
	if err != nil {
		return nil, err
	}
	other.engine, other.connect = engine, time.Since(begun)
	return other, nil
}

// Run runs a command in the session, and returns what happened as [Gateway.Exec]
// does.
func (s *Session) Run(ctx context.Context, command Command) Result {
	result := s.result(command)
	s.connect = 0
	run := s.gateway.sessionCommand(s.host, s.options, command, result.ID)
	if command.Started != nil {
		run.Started = func() { command.Started(s.engine) }
	}
	result.Result, result.Err = s.engine.Run(ctx, run)
	return result
}

// result returns the result of a command that has not run.
func (s *Session) result(command Command) Result {
	r := Result{
		ID: ulid.Make().String(), Host: s.name, Command: command.Text,
		Result:  session.Result{Verdict: session.NotStarted, ExitCode: -1, Streams: session.Split},
		Connect: s.connect,
	}
	if s.host.Name != "" {
		r.User, r.Transport = Login(s.host), s.host.Transport
	}
	if s.engine != nil {
		r.Session, r.Shell = s.engine.ID(), s.engine.Shell()
	}
	return r
}

// Origin returns the directory that the session started in.
func (s *Session) Origin() string { return s.engine.Origin() }

// Done is closed once the session's shell has ended, or the way to it.
func (s *Session) Done() <-chan struct{} { return s.engine.Done() }

// Describe returns a result that has of a command only the account, the
// transport, the session and the shell.
func (s *Session) Describe() Result { return s.result(Command{}) }

// Close ends the session, and its connection if that is its own.
func (s *Session) Close() {
	if s.engine != nil {
		s.engine.Close()
	}
	if s.transport != nil && !s.borrowed {
		s.gateway.release(s.transport)
	}
}
