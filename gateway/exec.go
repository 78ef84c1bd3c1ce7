package gateway

import (
	"cmp"
	"context"
	"errors"
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
	// Name is what warnings about a script call it; empty means "the script".
	Name string
	// Line returns what they call a line of Text, of a file that has more in it than
	// Text; nil: what it is.
	Line func(int) int
	// Cwd and Env are for this command; see session.Command.
	Cwd   string
	Env   map[string]string
	Stdin io.Reader
	// TTY runs it on the terminal; Echo gives that terminal the modes that a
	// person expects, and leaves its prompts to who types.
	TTY, Echo bool
	Merge     bool
	Timeout   time.Duration
	// Session is for the session that Exec opens; [Session.Run] does not look at it.
	Session Options
	// Script runs Text statement by statement; see [Session.RunScript]. Cwd and Env
	// are the session's then.
	Script bool
	// Limit is how many bytes of each stream the result keeps, and prompts are read
	// from; 0 means 1 MiB.
	Limit int
	// Spool keeps output whole that is too long for the result.
	Spool bool
	// Output is called as output comes; see session.Command.
	Output func(session.Stream, []byte)
	// Started is called once the command runs, before any Output.
	Started func(Live)
	// Answer answers prompts before the inventory does: when it fails, the
	// host's sudo.password is tried. again: it has answered this prompt of the same
	// command, or statement, before.
	Answer func(ctx context.Context, p session.Prompt, again bool) (string, error)

	part *session.Script // of what; see session.Command
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
	options := command.Session
	if command.Script {
		options.Cwd, options.Env = command.Cwd, command.Env
		command.Cwd, command.Env = "", nil
	}
	s, err := g.begin(ctx, name, options)
	defer func() { s.Close() }() // also one that failed: it is as far as it came
	if err != nil {
		result := s.result(command)
		result.Err = err
		return result
	}
	if command.Script {
		return s.RunScript(ctx, command)
	}
	return s.Run(ctx, command)
}

// enterAs changes the account that a host is entered as.
func enterAs(host *hosts.Host, user string) error {
	switch {
	case user == "":
		return nil
	case host.Local() && user != login():
		return &transport.Error{Code: "usage", Message: fmt.Sprintf("gateway: %s: this machine is entered as %s only", host.Name, login()), Hint: "leave --user out"}
	case !hosts.ValidUser(user):
		return &transport.Error{Code: "usage", Message: fmt.Sprintf("gateway: %s: %.100q is not a user name", host.Name, user)}
	}
	host.User = user
	return nil
}

// otherUser refuses a local host that the inventory wants to be entered as another
// user: what runs there would be somebody else's than it says.
func otherUser(host hosts.Host) error {
	if host.User == "" || host.User == login() {
		return nil
	}
	return &transport.Error{
		Code:    "inventory.invalid",
		Message: fmt.Sprintf("gateway: %s: this machine is entered as %s only, and %s says user: %s", host.Name, login(), host.Origin("user"), host.User),
		Hint:    "take user out there; another user's commands run with sudo",
	}
}

func (g *Gateway) sessionConfig(host hosts.Host, options Options) session.Config {
	env := Environment(host)
	maps.Copy(env, options.Env)
	return session.Config{
		ID:    NewSessionID(),
		Shell: cmp.Or(options.Shell, host.Shell), Login: host.Login || options.Login,
		Env: env, Cwd: cmp.Or(options.Cwd, host.Cwd),
		Size: options.Size, Term: options.Term,
		Ledger: g.ledger, OpenTimeout: OpenTimeout(host.ConnectTimeout),
	}
}

// OpenTimeout is how long opening a session may take on a machine for which connecting may
// take so long: a link that is slow for the one is so for the other.
func OpenTimeout(connect time.Duration) time.Duration { return max(connect, session.OpenTimeout) }

// Environment returns what a host's sessions start with: its own variables,
// and those of this process that it asks for. The map is the caller's.
func Environment(host hosts.Host) map[string]string {
	env := make(map[string]string, len(host.Env))
	maps.Copy(env, host.Env)
	for _, name := range host.EnvPass {
		if value, ok := os.LookupEnv(name); ok {
			env[name] = value
		}
	}
	return env
}

// NewSessionID returns a name for a session: short, and unlikely to meet another.
func NewSessionID() string {
	id := strings.ToLower(ulid.Make().String())
	return "s-" + id[len(id)-10:]
}

func (g *Gateway) sessionCommand(host hosts.Host, options Options, command Command, id string) session.Command {
	c := session.Command{
		Text: command.Text, Cwd: command.Cwd, Env: command.Env, Stdin: command.Stdin,
		TTY: command.TTY, Echo: command.Echo, Merge: command.Merge, Script: command.part,
		Timeout: command.Timeout, Limit: command.Limit, Output: command.Output,
	}
	if command.Spool {
		c.Spool = func(from session.Stream) session.Spool { return g.spools.open(id, from) }
	}
	if !command.Echo {
		given := ""                   // the prompt that the inventory has answered
		answered := map[string]bool{} // those that the command's own has
		c.Answer = func(ctx context.Context, p session.Prompt) (string, error) {
			nobody := errNobody
			if command.Answer != nil {
				text, err := command.Answer(ctx, p, answered[p.Text])
				if err == nil {
					answered[p.Text] = true
					return text, nil
				}
				nobody = err // says more
			}
			text, err := g.answer(ctx, host, options, p, &given)
			if errors.Is(err, errNobody) {
				err = nobody
			}
			return text, err
		}
	}
	return c
}

// answer answers a command's prompt: a person at the terminal does, or else the
// inventory for sudo's prompt, whose password it may hold. That is given to no program
// of the account's own, whatever it prints, and to a prompt once: the same again may
// have refused it, and would lock the account. A second sudo that keeps no ticket asks
// the same, and nothing tells the two apart: what sudo says of a refusal it may say
// where nobody reads it (2>/dev/null).
func (g *Gateway) answer(ctx context.Context, host hosts.Host, options Options, p session.Prompt, given *string) (string, error) {
	switch {
	case g.config.Ask != nil:
		return g.config.Ask(ctx, Question{Kind: AskCommand, Host: host.Name, User: Login(host), Prompt: p.Text})
	case host.Sudo.Password != "" && p.OfSudo():
		if !p.Root {
			return "", errors.New("sudo.password is for sudo alone, and what asks does not run as root")
		}
		if *given == p.Text {
			return "", errors.New("sudo.password was given once, and the same is asked again: it is wrong, or another sudo asks")
		}
		*given = p.Text
		return options.secret(ctx, host.Sudo.Password)
	}
	return "", errNobody
}

var errNobody = errors.New("nobody to ask")
