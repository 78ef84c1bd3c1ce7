package fleet

import (
	"context"

	"github.com/oklog/ulid/v2"

	"gateway/gateway"
	"gateway/session"
	"gateway/transport"
)

// Exec returns the task of running a command, which is run on a host by run, as
// [gateway.Gateway.Exec] does it. The text is for the results of hosts that are never
// tried.
func Exec(hosts []string, text string, run func(ctx context.Context, host int) gateway.Result) Task[gateway.Result] {
	return Task[gateway.Result]{
		// What had not begun on a host when the run was ended is skipped there: what kept
		// it from beginning is the run's end, whatever its layers make of that.
		Run: func(ctx context.Context, host int) gateway.Result {
			r := run(ctx, host)
			if r.Verdict == session.NotStarted && ctx.Err() != nil {
				r.Err = skipped("ended while connecting", transport.Cause(ctx))
			}
			return r
		},
		Outcome: OutcomeOf,
		Without: func(host int, outcome Outcome, why error) gateway.Result {
			verdict := session.Unknown
			if outcome == Skipped {
				verdict, why = session.NotStarted, skipped("not tried", why)
			}
			return gateway.Result{
				ID: ulid.Make().String(), Host: hosts[host], Command: text, Err: why,
				Result: session.Result{Verdict: verdict, ExitCode: -1, Streams: session.Split},
			}
		},
	}
}
