package main

import (
	"gateway/fleet"
	"gateway/gateway"
	"gateway/runs"
	"gateway/script"
)

// kept is what is kept of a host's result once it has been shown: what its steps
// wrote only where something at the end wants it.
func (r *scriptRun) kept(result script.Result) script.Result {
	if r.app.out.format == "json" || r.reports.wantOutput() {
		return result
	}
	for i := range result.Steps {
		s := &result.Steps[i]
		s.Stdout, s.Stderr, s.Terminal = nil, nil, nil
	}
	return result
}

// done shows a result, and returns what is kept of it.
func (r *scriptRun) done(_ int, result script.Result) script.Result {
	r.view.done(&result)
	if r.reports.events != nil {
		r.reports.events.done(&result)
	}
	r.app.log.Info("run", "host", result.Host, "outcome", result.Outcome, "code", gateway.Code(result.Err), "connect", result.Connect, "duration", result.Duration)
	return r.kept(result)
}

// end writes the reports, and shows what is left to show.
func (r *scriptRun) end(s *summary[script.Result]) {
	s.unwritten(r.reports.write(s.results))
	if r.reports.events != nil {
		r.reports.events.end(s)
	}
	s.unwritten(r.reports.close())
	r.view.end(s) // the summary says the status
}

// without is the result of a host on which the script has not come to its end.
func (r *scriptRun) without(host int, outcome fleet.Outcome, why error) script.Result {
	return r.runner.Failed(r.names[host], outcome, why)
}

func scriptOutcome(r script.Result) fleet.Outcome { return r.Outcome }

// rememberedScript is what a record says about a host.
func rememberedScript(r script.Result) runs.Host {
	h := runs.Host{
		Host: r.Host, Outcome: string(r.Outcome), Verdict: "not_started",
		StartedAt: gateway.Timestamp(r.Started), DurationMS: r.Duration.Milliseconds(), ConnectMS: r.Connect.Milliseconds(),
	}
	var err error
	first := r.FirstFailure()
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Attempts == 0 && !s.Failed() {
			continue
		}
		h.Verdict, h.ExitCode = string(s.Verdict), nil
		if s.ExitCode >= 0 {
			h.ExitCode = &s.ExitCode
		}
		if s == first {
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
