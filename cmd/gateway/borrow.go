package main

import (
	"context"
	"errors"
	"net"

	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/internal/socket"
	"gateway/transport"
)

// borrow has open use the connections of the daemon, if one runs, unless a flag or the
// settings say no. Where there is nothing to borrow, a command makes its own
// connection, and only what a person can change is worth a word.
func (a *app) borrow(noDaemon, interactive bool) {
	path, err := a.socket()
	if noDaemon || a.config.NoDaemon || err != nil { // none of ours can listen there
		return
	}
	dial := func(ctx context.Context) (net.Conn, error) { return socket.Dial(ctx, path) }
	a.warm = func(ctx context.Context, target gateway.Target) (transport.Transport, bool) {
		t, err := client.Borrow(ctx, dial, api.Lend{Key: target.Key(), Interactive: interactive})
		switch {
		case err == nil:
			return t, true
		case socket.Absent(err), ctx.Err() != nil:
		case gateway.Code(err) == "daemon.version", errors.Is(err, context.DeadlineExceeded):
			message := err.Error() + ": not using its connections"
			if hint := gateway.Hint(err); hint != "" {
				message += " (" + hint + ")"
			}
			a.warnOnce(message)
		default:
			a.log.Debug("borrow", "host", target.Name, "error", err)
		}
		return nil, false
	}
}
