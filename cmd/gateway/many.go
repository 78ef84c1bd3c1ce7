package main

import (
	"context"
	"os"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/internal/redact"
	"gateway/runs"
	"gateway/session"
)

// manyFlags are what the command line says about many hosts. For one host only
// out matters: scripts may pass the same flags whatever selector they are given.
type manyFlags struct {
	plan         fleet.Plan
	gather, diff bool
	out          string
}

func (f *manyFlags) add(a *app, flags *pflag.FlagSet) {
	a.planFlags(flags, &f.plan)
	flags.BoolVarP(&f.gather, "gather", "b", false, "show each outcome once, at the end, under the names of its hosts")
	flags.BoolVar(&f.diff, "diff", false, "with --gather: show how outcomes differ from the most frequent one of those that ran")
	flags.StringVar(&f.out, "out", "", "keep HOST.stdout, HOST.stderr and HOST.json in `DIR`")
}

func (f *manyFlags) check(cmd *cobra.Command, format string) error {
	switch {
	case f.plan.Forks < 1:
		return usage(cmd, "", "--forks: at least 1")
	case (f.gather || f.diff) && format != "text":
		return usage(cmd, "", "--gather and --diff are for text, not for %s", format)
	}
	return nil
}

// A manyRun is one command on many hosts.
type manyRun struct {
	app     *app
	gateway *gateway.Gateway
	command gateway.Command
	names   []string
	view    view
	out     *outDir
	input   *input // nil: no stdin
	unread  *unread
}

// execMany runs a command on many hosts.
func (a *app) execMany(cmd *cobra.Command, selector string, c gateway.Command, f *execFlags) error {
	ctx := cmd.Context()
	a.borrow(f.noDaemon, false)
	// Of several hosts at once nobody knows which one asks.
	g, selected, err := a.choose(ctx, nil, policyStrict, selector)
	if err != nil {
		return err
	}
	defer g.Close()
	m := &manyRun{app: a, gateway: g, command: c, names: namesOf(selected), unread: a.unread(f)}
	if m.out, err = a.openOut(f.many.out); err != nil {
		return err
	}
	m.command.Spool = a.out.format != "text"
	if m.view, m.command.Limit = a.newView(m.names, &f.many); m.out != nil {
		m.command.Limit = 0
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	a.hangUp(ctx, patience)
	if c.Stdin != nil {
		m.input = newInput(c.Stdin, stop)
	}
	m.unread.warn()
	all := fleetRun[gateway.Result]{
		app: a, names: m.names, plan: f.many.plan, task: fleet.Exec(m.names, c.Text, m.exec),
		record: remembered, counts: commandOutcome, end: m.end, line: a.showProgress(m.names),
	}
	all.task.Done = m.done
	all.begin("exec", selector, c.Text, redact.New(passedOn(f.env)...).String)
	return all.run(ctx)
}

// passedOn returns what --env NAME takes from gateway's environment, which is
// how secrets are handed over.
func passedOn(list []string) []string {
	var secrets []string
	for _, entry := range list {
		if value, ok := os.LookupEnv(entry); ok && !strings.Contains(entry, "=") {
			secrets = append(secrets, value)
		}
	}
	return secrets
}

// exec runs the command on one host.
func (m *manyRun) exec(ctx context.Context, host int) gateway.Result {
	c := m.command
	if m.input != nil {
		c.Stdin = m.input.reader()
	}
	var started atomic.Bool
	c.Started = func(gateway.Live) {
		if !started.Swap(true) {
			m.view.started(host)
		}
	}
	c.Output = m.out.tee(m.names[host], func(from session.Stream, b []byte) { m.view.output(host, from, b) })
	return m.gateway.Exec(ctx, m.names[host], c)
}

// done shows a result, and returns what is kept of it.
func (m *manyRun) done(host int, r gateway.Result) gateway.Result {
	m.out.result(m.names[host], r)
	m.view.done(host, r)
	m.app.log.Info("exec", "host", r.Host, "id", r.ID, "verdict", r.Verdict, "outcome", fleet.OutcomeOf(r), "code", gateway.Code(r.Err), "connect", r.Connect, "duration", r.Duration)
	return withoutOutput(r)
}

// end shows the rest.
func (m *manyRun) end(s *summary[gateway.Result]) {
	m.unread.warn()
	s.unwritten(m.out.close())
	m.view.end(s) // the summary says the status
}

// remembered is what a record says about a result.
func remembered(r gateway.Result) runs.Host {
	h := runs.Host{
		Host: r.Host, Outcome: string(fleet.OutcomeOf(r)), Verdict: string(r.Verdict), Line: r.Line,
		StartedAt: gateway.Timestamp(r.Started), DurationMS: r.Duration.Milliseconds(), ConnectMS: r.Connect.Milliseconds(),
		Error: recorded(r.Err),
	}
	if r.ExitCode >= 0 {
		h.ExitCode = &r.ExitCode
	}
	if r.Signal != "" {
		h.Signal = &r.Signal
	}
	return h
}
