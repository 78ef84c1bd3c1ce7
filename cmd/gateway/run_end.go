package main

import (
	"context"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/runs"
	"gateway/script"
)

// kept is what is kept of a host's result once it has been shown: what its steps
// wrote only where something at the end wants it.
func (r *scriptRun) kept(result script.Result) script.Result {
	if r.app.config.Output == "json" || r.reports.wantOutput() {
		return result
	}
	for i := range result.Steps {
		s := &result.Steps[i]
		s.Stdout, s.Stderr, s.Terminal = nil, nil, nil
	}
	return result
}

// finish shows what is left to show, and returns the status.
func (r *scriptRun) finish(ctx context.Context, s *scriptSummary) error {
	a := r.app
	s.status = a.out.status(statusOf(ctx, s.results, scriptOutcome, s.why))
	s.unwritten(a.out, r.reports.write(s.results))
	s.run = a.endRun(r.journal, s.status)
	if r.reports.events != nil {
		r.reports.events.end(s)
	}
	s.unwritten(a.out, r.reports.close())
	r.view.end(s) // the summary says the status
	return a.parted(r.journal, s.status)
}

// without is the result of a host on which the script has not come to its end.
func (r *scriptRun) without(host int, outcome fleet.Outcome, why error) script.Result {
	return r.runner.Failed(r.names[host], outcome, why)
}

func scriptOutcome(r script.Result) fleet.Outcome { return r.Outcome }

// rememberedScript is what a record says about a host.
func rememberedScript(r *script.Result) runs.Host {
	h := runs.Host{
		Host: r.Host, Outcome: string(r.Outcome), Verdict: "not_started",
		StartedAt: gateway.Timestamp(r.Started), DurationMS: r.Duration.Milliseconds(), ConnectMS: r.Connect.Milliseconds(),
	}
	var err error
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Attempts == 0 && !s.Failed() {
			continue
		}
		h.Verdict, h.ExitCode = string(s.Verdict), nil
		if s.ExitCode >= 0 {
			h.ExitCode = &s.ExitCode
		}
		if s.Failed() {
			h.Line, err = s.FailedLine, s.Err
			break
		}
	}
	if r.Err != nil {
		err = r.Err
	}
	h.Error = recorded(err)
	return h
}
