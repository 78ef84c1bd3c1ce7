package main

import (
	"context"
	"fmt"
	"time"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/session"
)

// half is how much of a stream a result holds of its beginning, and of its end.
const half = 512 << 10

// soFar returns what this call knows of a command that has started, with what it
// has got of the output.
func (e *execution) soFar(verdict session.Verdict, err error) gateway.Result {
	r := gateway.Result{ID: e.command.ID, Host: e.command.Host, Session: e.command.Session, Command: e.run.Text, Err: err, Result: session.Result{
		Verdict: verdict, ExitCode: -1, Streams: session.Split, Started: e.command.StartedAt, Truncated: e.dropped > 0,
	}}
	for from, h := range e.heard {
		data := h.Bytes()
		r.Truncated = r.Truncated || !h.Whole()
		switch session.Stream(from) {
		case session.Stdout:
			r.Stdout, r.StdoutBytes = data, h.Total()
		case session.Stderr:
			r.Stderr, r.StderrBytes = data, h.Total()
		case session.Terminal:
			r.Terminal = data
		}
	}
	return r
}

// unfinished returns what is known of a command that goes on without this call. It
// waits for input if there is a prompt.
func (e *execution) unfinished(ctx context.Context, prompt *api.Prompt) gateway.Result {
	state, text := api.Running, ""
	if prompt != nil {
		state, text = api.WaitingInput, prompt.Text
	}
	r := gateway.Result{ID: e.command.ID, Host: e.command.Host, Session: e.command.Session, Command: e.run.Text, Result: session.Result{
		Verdict: session.Verdict(state), ExitCode: -1, Streams: session.Split,
		Started: e.command.StartedAt, Duration: time.Since(e.command.StartedAt), Prompt: text,
	}}
	if s, err := e.client.Session(ctx, e.session); err == nil {
		r.User, r.Transport, r.Shell = s.User, s.Transport, s.Shell
	}
	if err := e.missing(); err != nil {
		e.app.warn(err.Error())
	}
	if e.app.config.Output == "text" {
		what, hint := "it still runs", e.goOn()
		switch {
		case prompt == nil:
		case draws(prompt):
			what = "it draws on the screen, and waits for keys"
			hint = fmt.Sprintf("its id is %s: gateway session attach %s, or gateway session screen %[2]s and gateway session send %[1]s --key KEY", e.command.ID, e.session)
		default:
			what = "it waits for input" + atQuestion(prompt)
			hint = fmt.Sprintf("its id is %s: gateway session answer %[1]s, then gateway session wait %[1]s", e.command.ID)
		}
		e.app.out.say("gateway: " + what + "\nhint: " + hint)
		return r
	}
	for _, stream := range []session.Stream{session.Stdout, session.Stderr, session.Terminal} {
		e.far(ctx, stream, &r)
	}
	e.cut(r)
	return r
}

// far adds to a result what has come of a stream so far.
func (e *execution) far(ctx context.Context, stream session.Stream, r *gateway.Result) {
	o, err := e.client.Output(ctx, e.session, api.Query{Command: e.command.ID, Stream: stream.String(), Head: half, Tail: half, Max: 2 * half})
	if err != nil {
		e.app.warn(err.Error())
		return
	}
	var data []byte
	for _, piece := range o.Pieces {
		data = append(data, piece.Data...)
	}
	switch stream {
	case session.Stdout:
		r.Stdout, r.StdoutBytes = data, o.Total
	case session.Stderr:
		r.Stderr, r.StderrBytes = data, o.Total
	case session.Terminal:
		r.Terminal = data
	}
	r.Truncated = r.Truncated || o.Omitted > 0
}
