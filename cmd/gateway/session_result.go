package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/session"
	"gateway/transport"
)

func (e *execution) result(c *api.Command) gateway.Result {
	r := *c.Result
	if e.refused != nil && r.Verdict == session.Interrupted {
		r.Err, r.Prompt = e.refused, e.prompt.Text
	}
	missing := e.missing()
	if e.app.out.format == "json" { // which has what the result has
		if missing = nil; c.Why != nil && r.Truncated {
			missing = notKept("some", c.Why)
		}
	}
	switch {
	case r.Err == nil:
		r.Err = missing
	case missing != nil:
		e.app.warn(missing.Error())
	}
	if missing == nil {
		e.cut(r)
	}
	return r
}

// leftEarly returns what is known of a command whose caller leaves before it has heard
// of its start: the daemon may have got the request.
func (e *execution) leftEarly() gateway.Result {
	r := notStarted(e.session, e.run.Text, &transport.Error{
		Code:    "link.lost",
		Message: "left before the daemon said that the command has started",
		Hint:    "look at the session before running it again: gateway session list",
	})
	r.Verdict = session.Unknown
	return r
}

// lost returns what is known when the daemon says no more.
func (e *execution) lost(err error) gateway.Result {
	if e.command == nil {
		r := notStarted(e.session, e.run.Text, err)
		if err == nil || errors.Is(err, client.ErrLost) { // it may have got the request
			r.Verdict, r.Err = session.Unknown, lostDaemon(err)
		}
		return r
	}
	return e.soFar(session.Unknown, lostDaemon(err))
}

func lostDaemon(err error) error {
	if err == nil {
		err = errors.New("its answer has no end")
	}
	return &transport.Error{Code: "daemon.unreachable", Message: fmt.Sprintf("daemon: lost while the command ran: %v", err), Err: err, Hint: "what is known of it: gateway session list"}
}

// half is how much of a stream a result holds of its beginning, and of its end.
const half = 512 << 10

// soFar returns what this call knows of a command that has started, with what it
// has got of the output.
func (e *execution) soFar(verdict session.Verdict, err error) gateway.Result {
	r := e.known(verdict)
	r.Err, r.Truncated = err, e.dropped > 0
	for from, h := range e.heard {
		setStream(&r, session.Stream(from), h.Bytes(), h.Total())
		r.Truncated = r.Truncated || !h.Whole()
	}
	return r
}

// known returns what is known of a command from its start on.
func (e *execution) known(verdict session.Verdict) gateway.Result {
	return gateway.Result{ID: e.command.ID, Host: e.command.Host, Session: e.command.Session, Command: e.run.Text, Result: session.Result{
		Verdict: verdict, ExitCode: -1, Streams: e.command.Streams(), Started: e.command.StartedAt,
	}}
}

// setStream puts a stream into a result, with how long it was.
func setStream(r *gateway.Result, stream session.Stream, data []byte, total int64) {
	switch stream {
	case session.Stdout:
		r.Stdout, r.StdoutBytes = data, total
	case session.Stderr:
		r.Stderr, r.StderrBytes = data, total
	case session.Terminal:
		r.Terminal = data
	}
}

// unfinished returns what is known of a command that goes on without this call, where
// the daemon still answers. It waits for input if there is a prompt.
func (e *execution) unfinished(ctx context.Context, prompt *api.Prompt) gateway.Result {
	r := e.known(session.Verdict(api.Running))
	if prompt != nil {
		r.Verdict, r.Prompt = session.Verdict(api.WaitingInput), prompt.Text
	}
	r.Duration = api.Since(r.Started)
	switch s, err := e.client.Session(ctx, e.session); {
	case errors.Is(err, client.ErrLost):
		return e.lost(err)
	case err == nil:
		r.User, r.Transport, r.Shell = s.User, s.Transport, s.Shell
	}
	if err := e.missing(); err != nil {
		e.app.warn(err.Error())
	}
	if e.app.out.format == "text" {
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
	setStream(r, stream, data, o.Total)
	r.Truncated = r.Truncated || o.Omitted > 0
}

// cut says where the rest is of an output that is longer than an object has of it:
// the daemon keeps that, and there is no spool.
func (e *execution) cut(r gateway.Result) {
	if r.Truncated && e.app.out.format == "json" {
		e.app.warn(fmt.Sprintf("the middle of the output was left out: gateway session read %s has what the daemon keeps of it", r.ID))
	}
}

// missing says what this call could not show of the command's output; nil if it
// has shown all that came.
func (e *execution) missing() error {
	switch {
	case e.dropped == 0:
		return nil
	case e.why != nil:
		return notKept(fmt.Sprintf("%d bytes", e.dropped), e.why)
	}
	return &transport.Error{
		Code: outputFailed, Message: fmt.Sprintf("daemon: %d bytes of the output are no longer there: it came faster than it was read", e.dropped), Hint: hintRan,
	}
}

// hintRan is the hint where the output of a command is not whole.
const hintRan = "the command has run: see what it has done before you run it again"

// notKept is the error of an output that the daemon could not keep.
func notKept(what string, why *gateway.JSONError) error {
	return &transport.Error{Code: outputFailed, Message: fmt.Sprintf("daemon: %s of the output could not be kept: %s", what, why.Message), Hint: cmp.Or(why.Hint, hintRan), Err: why.Err()}
}
