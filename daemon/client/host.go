package client

import (
	"cmp"
	"context"
	"maps"

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
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, o.Env)
	o.Env = env
	o.SudoPassword = host.Sudo.Password
	if o.Sudo != nil {
		o.Sudo.User = cmp.Or(o.Sudo.User, host.Sudo.User)
		o.Sudo.Flags, o.Sudo.Password = host.Sudo.Flags, host.Sudo.Password
	}
	return c.Open(ctx, o, g.Caller())
}
