package client

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/transport"
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

// endTime is how long a daemon may take to say what became of an opening that was given
// up.
const endTime = time.Second

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
	asking, cancel := untilTold(ctx) // ends the answers with the request
	defer cancel()
	alive, end := c.whileAlive(asking, aliveTime)
	defer end()
	err := stream(alive, c, http.MethodPost, "/v1/sessions", open, decodeLine, func(e api.OpenEvent) error {
		switch {
		case e.Question != nil:
			go c.answer(asking, who, *e.Question)
		case e.Warning != "" && who.Warn != nil:
			who.Warn(e.Warning)
		case e.Error != nil:
			return e.Error.Err()
		case e.Session != nil:
			opened = e.Session
		}
		return nil
	})
	switch {
	case ctx.Err() != nil:
		if opened != nil { // nobody learns of it
			ending, done := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
			defer done()
			_, _ = c.Close(ending, opened.ID) // it may be over; the daemon closes it also without us
		}
		return api.Session{}, transport.Cause(ctx)
	case err == nil && opened == nil:
		err = unreachable(errors.New("its answer has no end"))
	case err == nil:
		return *opened, nil
	}
	return api.Session{}, err
}

// untilTold returns a context for the request of an opening that ctx ends. The daemon
// learns of that as of a caller that writes no more, and what it says then is read: it
// may have opened the session already.
func untilTold(ctx context.Context) (asking context.Context, cancel func()) {
	asking, end := context.WithCancelCause(context.WithoutCancel(ctx))
	var conn atomic.Pointer[net.Conn]
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { conn.Store(&info.Conn) }}
	stop := context.AfterFunc(ctx, func() {
		if c := conn.Load(); c != nil {
			if half, ok := (*c).(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
				select {
				case <-asking.Done():
				case <-time.After(endTime):
				}
			}
		}
		end(context.Cause(ctx))
	})
	return httptrace.WithClientTrace(asking, trace), func() {
		stop()
		end(nil)
	}
}

// answer answers a question of an open request. The answer that can't be delivered is of a
// request that has failed.
func (c *Client) answer(ctx context.Context, who gateway.Caller, q api.Question) {
	var answer api.Answer
	var err error
	switch {
	case q.Secret != "":
		answer.Text, err = who.Secret(ctx, q.Secret)
	case who.Ask != nil:
		answer.Text, err = who.Ask(ctx, q.Question)
	default:
		err = errors.New("nobody to ask")
	}
	answer.Error = gateway.NewJSONError(err)
	_ = c.askWithin(ctx, answerTime, http.MethodPost, "/v1/answers/"+url.PathEscape(q.ID), answer, nil)
}
