package client

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"

	"gateway/daemon/api"
	"gateway/gateway"
)

// OpenHost opens a session on a host that a gateway knows by name. What o leaves
// out comes from the host's settings; user, if it is not empty, replaces the
// host's.
func (c *Client) OpenHost(ctx context.Context, g *gateway.Gateway, name, user string, o api.Open) (api.Session, error) {
	host, err := g.ResolveAs(ctx, name, user)
	if err != nil {
		return api.Session{}, err
	}
	if o.Target, err = g.Target(ctx, host); err != nil {
		return api.Session{}, err
	}
	o.Shell = cmp.Or(o.Shell, host.Shell)
	o.Login = o.Login || host.Login
	o.Cwd = cmp.Or(o.Cwd, host.Cwd)
	env := gateway.Environment(host)
	maps.Copy(env, o.Env)
	o.Env = env
	o.SudoPassword = host.Sudo.Password
	if o.Sudo != nil {
		o.Sudo.User = cmp.Or(o.Sudo.User, host.Sudo.User)
		o.Sudo.Flags, o.Sudo.Password = host.Sudo.Flags, host.Sudo.Password
	}
	return c.Open(ctx, o, g.Caller())
}

// caller answers the questions of an open request.
type caller struct {
	client *Client
	gateway.Caller
}

// Open opens a session. Questions and secret references on the way are the
// caller's to answer.
func (c *Client) Open(ctx context.Context, open api.Open, who gateway.Caller) (api.Session, error) {
	if err := checkPlace(open.Cwd, open.Env); err != nil {
		return api.Session{}, err
	}
	if who.Secret == nil {
		who.Secret = gateway.Secret
	}
	open.Interactive = who.Ask != nil
	var opened *api.Session
	asking, cancel := context.WithCancel(ctx) // ends the answers with the request
	defer cancel()
	err := stream(asking, c, http.MethodPost, "/v1/sessions", open, decodeLine, func(e api.OpenEvent) error {
		switch {
		case e.Question != nil:
			go caller{c, who}.answer(asking, *e.Question)
		case e.Warning != "" && who.Warn != nil:
			who.Warn(e.Warning)
		case e.Error != nil:
			return e.Error.Err()
		case e.Session != nil:
			opened = e.Session
		}
		return nil
	})
	if err == nil && opened == nil {
		err = unreachable(errors.New("its answer has no end"))
	}
	switch {
	case err == nil:
		return *opened, nil
	case opened != nil && ctx.Err() != nil: // nobody learns of it
		ending, done := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
		defer done()
		_, _ = c.Close(ending, opened.ID) // it may be over; the daemon closes it also without us
	}
	return api.Session{}, err
}

// answer answers one question. The answer that can't be delivered is of a
// request that has failed.
func (c caller) answer(ctx context.Context, q api.Question) {
	var answer api.Answer
	var err error
	switch {
	case q.Secret != "":
		answer.Text, err = c.Secret(ctx, q.Secret)
	case c.Ask != nil:
		answer.Text, err = c.Ask(ctx, gateway.Question{Kind: q.Kind, Host: q.Host, User: q.User, Prompt: q.Prompt, Instruction: q.Instruction, Echo: q.Echo})
	default:
		err = errors.New("nobody to ask")
	}
	answer.Error = gateway.NewJSONError(err)
	_ = c.client.ask(ctx, answerTime, http.MethodPost, "/v1/answers/"+url.PathEscape(q.ID), answer, nil)
}
