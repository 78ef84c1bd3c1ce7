package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/session"
	"gateway/transport"
)

// openTime bounds the opening of a session, so that the call ends in time.
const openTime = 40 * time.Second

// dial opens a session on a host.
func (c *call) dial(host string, o api.Open) (api.Session, error) {
	h, err := c.host(host)
	if err != nil {
		return api.Session{}, err
	}
	if o.Client, err = c.here.get(c.req).client(c.ctx, c.daemon); err != nil {
		return api.Session{}, err
	}
	ctx, cancel := context.WithTimeout(c.ctx, openTime)
	defer cancel()
	defer c.progress("", openTime)()
	s, err := c.daemon.OpenHost(ctx, c.config.Gateway, h.Name, "", o)
	if errors.Is(err, context.DeadlineExceeded) && c.ctx.Err() == nil {
		return s, c.unopened(h.Name, err)
	}
	if gateway.Code(err) == "session.limit" && strings.Contains(gateway.Hint(err), "gateway ") { // that is the command line's
		return s, &transport.Error{Code: "session.limit", Message: err.Error(), Hint: "close some with sessions; what others have open is theirs, or a person's to close", Err: err}
	}
	return s, err
}

// unopened says why no session was opened in time. Where the daemon does not even greet,
// that is no machine's doing.
func (c *call) unopened(host string, err error) error {
	if _, stuck := c.daemon.Hello(c.ctx); stuck != nil {
		return stuck
	}
	return late(host, "session", err)
}

// late is the error of a host on which something was not there within openTime.
func late(host, what string, err error) error {
	return &transport.Error{Code: "tcp.timeout", Message: fmt.Sprintf("%s: no %s after %v", host, what, openTime), Hint: "try again later, or tell the person who runs the host", Err: err}
}

// soon is when most commands have ended: those cost one request.
const soon = 100 * time.Millisecond

func (c *call) exec(in execArgs) (any, error) {
	s, err := c.dial(in.Host, api.Open{Once: true})
	if err != nil {
		return nil, err
	}
	var answer any
	command, err := c.start(s, in.commandArgs)
	if err == nil {
		answer, err = c.result(command, s, in.commandArgs)
	}
	if useless := err != nil || command.ID == "" && c.isUnused(s); useless && !c.left() { // nobody will ask for what runs in it
		_, _ = c.daemon.Close(context.WithoutCancel(c.ctx), s.ID) // it may be over
	}
	return answer, err
}

// isUnused reports whether the daemon is there and has run nothing in a session.
func (c *call) isUnused(s api.Session) bool {
	now, err := c.daemon.Session(context.WithoutCancel(c.ctx), s.ID)
	return err == nil && now.Command == nil
}

func (c *call) run(in runArgs) (any, error) {
	var command api.Command
	var err error
	s, known := c.opened.get(in.Session)
	if known {
		command, err = c.start(s, in.commandArgs)
	}
	// Nothing was run where the session is gone, and the name may be another's now.
	if code := gateway.Code(err); !known || code == "session.closed" || code == "session.not_found" {
		c.opened.forget(in.Session)
		if s, err = c.find(in.Session); err != nil {
			return nil, err
		}
		if s.State.Over() {
			return nil, closed(s)
		}
		c.opened.add(in.Session, s)
		command, err = c.start(s, in.commandArgs)
	}
	if err != nil {
		return nil, err
	}
	return c.result(command, s, in.commandArgs)
}

// start starts a command, and returns what became of it soon. With an error it
// was not run; without an ID, nobody knows.
func (c *call) start(s api.Session, in commandArgs) (api.Command, error) {
	if err := c.ctx.Err(); err != nil {
		return api.Command{}, err
	}
	run := api.Run{
		Text: in.Command, Cwd: in.Cwd, Env: in.Env, Stdin: []byte(in.Stdin), TTY: in.TTY,
		Timeout: api.Duration(milliseconds(in.TimeoutMS)), Wait: api.Duration(min(milliseconds(in.WaitMS), soon)), Limit: c.limit(in.MaxOutput),
	}
	run.Client, _ = c.here.get(c.req).client(c.ctx, c.daemon) // without it, the session goes with who has opened it
	// Whether it was started must be known, so the call's end does not count here.
	command, err := c.daemon.Run(context.WithoutCancel(c.ctx), s.ID, run)
	if gateway.Code(err) == "session.busy" {
		return command, c.busy(s, err)
	}
	if errors.Is(err, client.ErrLost) {
		return c.lost(api.Command{Host: s.Host, Session: s.ID, Text: in.Command}, err), nil
	}
	if err != nil {
		return command, c.sessionError(s.Name, err)
	}
	p := c.shown.command(command.ID)
	p.Lock()
	p.timeout = milliseconds(in.TimeoutMS)
	p.Unlock()
	return command, nil
}

// result waits for a command as long as the call may.
func (c *call) result(command api.Command, s api.Session, in commandArgs) (any, error) {
	var err error
	if wait := c.longest(in.WaitMS); command.State == string(api.Running) && wait > soon {
		command, _, err = c.await(command, api.Wait{Until: api.UntilExit, Limit: c.limit(in.MaxOutput)}, min(wait-soon, maxWait-time.Since(c.begun)))
	}
	if c.ctx.Err() != nil {
		if !c.left() {
			c.stop(command)
		}
		return nil, context.Cause(c.ctx)
	}
	var a *answer
	if err == nil {
		a, err = c.answer(command, s, c.limit(in.MaxOutput))
	}
	switch {
	case gateway.Code(err) != "daemon.unreachable":
		return a, err
	case !command.Over():
		return c.answer(c.lost(command, err), s, c.limit(in.MaxOutput))
	}
	return c.withoutOutput(command, s, err)
}

// withoutOutput answers with a result whose output the daemon does not give any
// more.
func (c *call) withoutOutput(command api.Command, s api.Session, err error) (*answer, error) {
	c.note("the output can't be read: %v", err)
	command.To = command.From
	a, err := c.answer(command, s, 0)
	if r := command.Result; a != nil && r != nil {
		a.Truncated, a.StdoutBytes, a.StderrBytes = true, r.StdoutBytes, r.StderrBytes
	}
	return a, err
}

// lost returns what is known of a command that was not over when the daemon said
// no more of it.
func (c *call) lost(command api.Command, err error) api.Command {
	command.State, command.To, command.Prompt = string(session.Unknown), command.From, nil
	command.Result = &gateway.Result{
		Result: session.Result{Started: command.StartedAt, Duration: time.Since(c.begun), Streams: command.Streams()},
		Err: &transport.Error{
			Code: "daemon.unreachable", Message: fmt.Sprintf("daemon: lost while the command ran: %v", err), Err: err,
			Hint: "sessions lists what is known of it",
		},
	}
	return command
}

// limit is how much of each stream an answer holds.
func (c *call) limit(asked int) int { return cmp.Or(asked, c.config.Output) }

// busy shows what is in the way of a command.
func (c *call) busy(s api.Session, err error) error {
	now, lookErr := c.daemon.Session(c.ctx, s.ID)
	if lookErr != nil || now.Command == nil {
		return err
	}
	a, lookErr := c.answer(*now.Command, now, c.config.Output)
	if lookErr != nil {
		return err
	}
	return busyError{err, a}
}

// left reports whether the call has ended with its client or with the server, which
// have cancelled nothing: the daemon knows what becomes of that client's sessions.
// The SDK ends the calls of a connection with the error of its end, and a call that
// is cancelled without one; so too, at times, when the server ends.
func (c *call) left() bool {
	server, ok := c.ctx.Value(servingKey{}).(context.Context)
	ended := ok && server.Err() != nil
	return c.ctx.Err() != nil && (ended || !errors.Is(context.Cause(c.ctx), context.Canceled))
}

type servingKey struct{}

// serving returns the context in which calls are served until ctx ends: they can
// tell whether it has.
func serving(ctx context.Context) context.Context {
	return context.WithValue(ctx, servingKey{}, ctx)
}

// served returns a call's context that ends with the server, too: the SDK tells no
// call of that, and waits for all of them.
func served(ctx context.Context) (context.Context, context.CancelFunc) {
	bound, cancel := context.WithCancelCause(ctx)
	server, ok := ctx.Value(servingKey{}).(context.Context)
	if !ok {
		return bound, func() { cancel(nil) }
	}
	stop := context.AfterFunc(server, func() { cancel(context.Cause(server)) })
	return bound, func() {
		stop()
		cancel(nil)
	}
}

// stop ends the command of a call that was cancelled.
func (c *call) stop(command api.Command) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), 10*time.Second)
	defer cancel()
	for _, level := range []session.Level{session.Int, session.Term, session.Kill} {
		if over, err := c.interruptOnce(ctx, command, level, 2*time.Second); over || err != nil {
			return
		}
	}
}

// interruptOnce asks a command to end, and reports whether it has.
func (c *call) interruptOnce(ctx context.Context, command api.Command, level session.Level, patience time.Duration) (bool, error) {
	now, err := c.daemon.Command(ctx, command.ID, 1)
	if err != nil || now.Over() {
		return true, err
	}
	if err := c.daemon.Interrupt(ctx, command.Session, api.Interrupt{Level: string(level), Command: command.ID}); err != nil {
		// It may have ended in between.
		now, lookErr := c.daemon.Command(ctx, command.ID, 1)
		if lookErr == nil && now.Over() {
			return true, nil
		}
		return false, err
	}
	w, err := c.daemon.Wait(ctx, command.Session, api.Wait{Until: api.UntilExit, Command: command.ID, Through: true, Limit: 1, Max: api.Duration(patience)})
	if err != nil { // the session went with it
		now, err := c.daemon.Command(ctx, command.ID, 1)
		return err == nil && now.Over(), err
	}
	return w.Met, nil
}

// await waits for something to happen to a command. It returns the command as it
// is then, also if the call has ended meanwhile.
func (c *call) await(command api.Command, w api.Wait, limit time.Duration) (api.Command, api.Waited, error) {
	defer c.progress(command.ID, limit)()
	w.Command, w.Max, w.Limit = command.ID, api.Duration(max(limit, time.Millisecond)), max(w.Limit, 1)
	waited, err := c.daemon.Wait(c.ctx, command.Session, w)
	switch code := gateway.Code(err); {
	case c.ctx.Err() != nil:
		return command, waited, context.Cause(c.ctx)
	case err != nil && code != "session.closed" && code != "session.not_found":
		return command, waited, err
	case err == nil:
		return *waited.Command, waited, nil
	}
	// Its session has gone with it.
	if command, err = c.daemon.Command(c.ctx, command.ID, 1); err == nil && w.Until == api.UntilMatch {
		waited, err = c.daemon.Matched(c.ctx, command, w)
	}
	waited.Met = waited.Met || w.Until == api.UntilExit && command.Over()
	return command, waited, err
}

// saying describes a command for a progress notification.
func (c *call) saying(ctx context.Context, id string) string {
	name, _, ok := strings.Cut(id, ".")
	if !ok {
		return "connecting"
	}
	s, err := c.daemon.Session(ctx, name)
	if err != nil || s.Command == nil || s.Command.ID != id {
		return "waiting"
	}
	return fmt.Sprintf("%s, %d bytes of output", s.Command.State, s.Command.To-s.Command.From)
}
