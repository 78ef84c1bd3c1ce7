package mcpserver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/hosts"
	"gateway/transport"
)

// A target is what a call is about: a session, and a command of it if there is
// one.
type target struct {
	session api.Session
	command *api.Command
}

// host returns a host that may be touched.
func (c *call) host(name string) (hosts.Host, error) {
	if h, ok := c.allowed[name]; ok {
		return h, nil
	}
	hint := cmp.Or(hosts.DidYouMean(name, "", c.names), "the tool hosts lists those that can be used")
	return hosts.Host{}, &transport.Error{Code: "inventory.unknown_host", Message: fmt.Sprintf("there is no host %q that this server may use", name), Hint: hint}
}

// target finds what a call names: a session with the command that runs or ran
// last in it, or one command.
func (c *call) target(in targetArgs) (target, error) {
	switch {
	case (in.Session == "") == (in.ID == ""):
		return target{}, usage("", "name either session or id")
	case in.Session != "":
		s, err := c.find(in.Session)
		return target{s, s.Command}, err
	}
	name, _, ok := strings.Cut(in.ID, ".")
	if !ok {
		return target{}, usage("", "%q is no id of a command: those look like s-1a2b3c4d5e.1; a session goes into session", in.ID)
	}
	s, err := c.find(name)
	if err != nil {
		return target{}, err
	}
	command, err := c.daemon.Command(c.ctx, in.ID, 1)
	return target{s, &command}, err
}

// find returns a session, also one that is over.
func (c *call) find(name string) (api.Session, error) {
	s, err := c.daemon.Session(c.ctx, name)
	if err != nil {
		return s, c.sessionError(name, err)
	}
	if _, ok := c.allowed[s.Host]; !ok {
		return api.Session{}, c.noSession(name)
	}
	return s, nil
}

// sessionError puts the hints of the daemon, which are for the command line,
// into an agent's words.
func (c *call) sessionError(name string, err error) error {
	switch gateway.Code(err) {
	case "session.not_found":
		return c.noSession(name)
	case "session.closed":
		if s, lookErr := c.daemon.Session(c.ctx, name); lookErr == nil && s.State.Over() {
			return closed(s)
		}
	}
	return err
}

// noSession names what was near.
func (c *call) noSession(name string) error {
	var names []string
	if open, err := c.visible(); err == nil {
		for _, s := range open {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	hint := hosts.DidYouMean(name, "", names)
	switch {
	case hint != "":
	case len(names) > 0:
		hint = "there are " + strings.Join(hosts.Fold(names), ", ")
	default:
		hint = "there is none: session_open opens one"
	}
	return &transport.Error{Code: "session.not_found", Message: fmt.Sprintf("there is no session %q", name), Hint: hint}
}

// closed says what became of a session that is asked for too late.
func closed(s api.Session) error {
	return &transport.Error{Code: "session.closed", Message: s.Fate(), Hint: "session_open opens another; its output is still there: output with session " + s.ID}
}

// visible lists the sessions that may be seen.
func (c *call) visible() ([]api.Session, error) {
	list, err := c.daemon.Sessions(c.ctx, false)
	return slices.DeleteFunc(list, func(s api.Session) bool {
		_, ok := c.allowed[s.Host]
		return !ok
	}), err
}
