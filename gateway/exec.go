package gateway

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/hosts"
	"gateway/session"
	"gateway/transport"
)

// Command is what [Gateway.Exec] runs. Only Text is needed.
type Command struct {
	Text string
	// Cwd and Env are for this command; see session.Command.
	Cwd   string
	Env   map[string]string
	Stdin io.Reader
	// TTY runs it on the terminal; Echo gives that terminal the modes that a
	// person expects, and leaves its prompts to who types.
	TTY, Echo bool
	Merge     bool
	Timeout   time.Duration
	// Shell, Login and User override the host's.
	Shell string
	Login bool
	User  string
	// Sudo runs it as another user: SudoUser, else the host's sudo.user, else root.
	Sudo     bool
	SudoUser string
	// Size and Term describe the terminal of whoever looks; an empty Term means
	// nobody does.
	Size transport.Size
	Term string
	// Spool keeps output whole that is too long for the result.
	Spool bool
	// Output is called as output comes; see session.Command.
	Output func(session.Stream, []byte)
	// Started is called once the command runs, before any Output.
	Started func(Live)
}

// Live is the way to a command that runs.
type Live interface {
	Write([]byte) (int, error)
	Resize(transport.Size) error
}

// Exec runs one command on one host, in a session of its own, and returns what
// happened; Result.Err says why if it is not that the command ended by itself.
// The context's end interrupts the command.
func (g *Gateway) Exec(ctx context.Context, name string, command Command) Result {
	result := Result{
		ID: ulid.Make().String(), Host: name, Command: command.Text,
		Result: session.Result{Verdict: session.NotStarted, ExitCode: -1, Streams: session.Split},
	}
	result.Err = g.exec(ctx, command, &result)
	return result
}

func (g *Gateway) exec(ctx context.Context, command Command, result *Result) error {
	host, err := g.Resolve(ctx, result.Host)
	if err != nil {
		return err
	}
	if err := As(&host, command.User); err != nil {
		return err
	}
	result.User, result.Transport = Login(host), host.Transport
	begun := time.Now()
	config := g.sessionConfig(host, command)
	if command.Sudo {
		config.Sudo, config.OpenTimeout = g.sudo(host, command.SudoUser), sudoTimeout
	}
	s, t, err := g.openSession(ctx, host, config)
	if t != nil {
		defer g.release(t)
		result.Connect = time.Since(begun)
	}
	if err != nil {
		return err
	}
	defer s.Close()
	result.Session, result.Shell = s.ID(), s.Shell()
	run := g.sessionCommand(host, command, result.ID)
	if command.Started != nil {
		run.Started = func() { command.Started(s) }
	}
	result.Result, err = s.Run(ctx, run)
	return err
}

// As changes the account that a host is entered as.
func As(host *hosts.Host, user string) error {
	if user == "" || user == Login(*host) {
		return nil
	}
	if host.Local() {
		return &transport.Error{Code: "usage", Message: fmt.Sprintf("gateway: %s: this machine is entered as %s only", host.Name, Login(*host)), Hint: "leave --user out"}
	}
	host.User = user
	return nil
}

func (g *Gateway) sessionConfig(host hosts.Host, command Command) session.Config {
	config := session.Config{
		ID:    sessionID(),
		Shell: host.Shell, Login: host.Login || command.Login,
		Env: Environment(host), Cwd: host.Cwd,
		Size: command.Size, Term: command.Term,
		Ledger: g.ledger,
	}
	if command.Shell != "" {
		config.Shell = command.Shell
	}
	return config
}

// Environment returns what a host's sessions start with: its own variables,
// and those of this process that it asks for.
func Environment(host hosts.Host) map[string]string {
	env := maps.Clone(host.Env)
	for _, name := range host.EnvPass {
		if value, ok := os.LookupEnv(name); ok {
			if env == nil {
				env = map[string]string{}
			}
			env[name] = value
		}
	}
	return env
}

// sessionID returns a name for a session: short, and unlikely to meet another.
func sessionID() string {
	id := strings.ToLower(ulid.Make().String())
	return "s-" + id[len(id)-10:]
}

func (g *Gateway) sessionCommand(host hosts.Host, command Command, id string) session.Command {
	c := session.Command{
		Text: command.Text, Cwd: command.Cwd, Env: command.Env, Stdin: command.Stdin,
		TTY: command.TTY, Echo: command.Echo, Merge: command.Merge,
		Timeout: command.Timeout, Output: command.Output,
	}
	if command.Spool {
		c.Spool = func(from session.Stream) session.Spool { return g.spools.open(id, from) }
	}
	if !command.Echo {
		c.Answer = func(ctx context.Context, p session.Prompt) (string, error) { return g.answer(ctx, host, p) }
	}
	return c
}

// answer answers a command's prompt: a person at the terminal does, or else the
// inventory for sudo's prompt, whose password it may hold.
func (g *Gateway) answer(ctx context.Context, host hosts.Host, p session.Prompt) (string, error) {
	switch {
	case g.config.Ask != nil:
		return g.config.Ask(ctx, Question{Kind: AskCommand, Host: host.Name, User: Login(host), Prompt: p.Text})
	case host.Sudo.Password != "" && strings.HasPrefix(p.Text, "[sudo] password for "):
		return Secret(ctx, host.Sudo.Password)
	}
	return "", errNobody
}

var errNobody = fmt.Errorf("nobody to ask")
