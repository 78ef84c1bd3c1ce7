package fleet

import (
	"context"

	"github.com/oklog/ulid/v2"

	"gateway/gateway"
	"gateway/session"
)

// An Exec is one command for many hosts.
type Exec struct {
	Hosts []string
	Plan  Plan
	// Run runs it on a host; see [gateway.Gateway.Exec].
	Run func(ctx context.Context, host int) gateway.Result
	// Text is the command, for the results of hosts that are never tried.
	Text string
	// Done is called with each result; see [Task].
	Done func(host int, r gateway.Result) gateway.Result
}

// Results runs the command and returns what happened on each host, and why
// hosts were not tried; see [Run].
func (e Exec) Results(ctx context.Context) ([]gateway.Result, error) {
	none := func(host int, verdict session.Verdict, err error) gateway.Result {
		return gateway.Result{
			ID: ulid.Make().String(), Host: e.Hosts[host], Command: e.Text, Err: err,
			Result: session.Result{Verdict: verdict, ExitCode: -1, Streams: session.Split},
		}
	}
	return Run(ctx, len(e.Hosts), e.Plan, Task[gateway.Result]{
		Run:    e.attempt,
		Failed: func(r gateway.Result) bool { return OutcomeOf(r) != OK },
		Skip: func(host int, why error) gateway.Result {
			return none(host, session.NotStarted, &skip{"not tried", why})
		},
		Crash: func(host int, err error) gateway.Result { return none(host, session.Unknown, err) },
		Done:  e.Done,
	})
}

// attempt runs the command on one host. A host on which it had not begun when
// the run was ended is one that was skipped: what kept it from beginning is the
// run's end, whatever its layers make of that.
func (e Exec) attempt(ctx context.Context, host int) gateway.Result {
	r := e.Run(ctx, host)
	if r.Verdict == session.NotStarted && ctx.Err() != nil {
		r.Err = &skip{"ended while connecting", context.Cause(ctx)}
	}
	return r
}
