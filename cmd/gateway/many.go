package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

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

// planFlags adds what the command line says about the order of many hosts.
func (a *app) planFlags(flags *pflag.FlagSet, plan *fleet.Plan) {
	plan.GiveUp = a.givenUp
	flags.IntVarP(&plan.Forks, "forks", "f", fleet.DefaultForks, "work on `N` hosts at the same time")
	flags.Func("batch", "work on batches of these `SIZES` one after the other, such as 1,10%,rest", func(s string) (err error) {
		plan.Batches, err = fleet.ParseBatches(s)
		return err
	})
	flags.Func("max-fail", "try no further host once more than `N` have failed, or N%", func(s string) error {
		a, err := fleet.ParseAmount(s)
		plan.MaxFail = &a
		return err
	})
	flags.BoolVar(&plan.FailFast, "fail-fast", false, "stop at the first failure, and interrupt what still runs")
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
	journal *runs.Journal
	line    *progress
	input   *input // nil: no stdin
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
	m := &manyRun{app: a, gateway: g, command: c}
	for _, host := range selected {
		m.names = append(m.names, host.Name)
	}
	if m.out, err = a.openOut(f.many.out); err != nil {
		return err
	}
	m.view = a.newView(m.names, &f.many)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	a.hangUp(ctx, patience)
	if c.Stdin != nil {
		m.input = newInput(c.Stdin, stop)
	}
	unread := a.unread(f)
	unread.warn()
	m.journal = a.beginRun("exec", selector, c.Text, m.names, redact.New(passedOn(f.env)...))
	begun := time.Now()
	m.line = a.showProgress(m.names)
	task := fleet.Exec(m.names, c.Text, m.exec)
	task.Done = m.done
	results, why := fleet.Run(ctx, len(m.names), f.many.plan, task)
	m.line.stop()
	unkept := m.view.end()
	unread.warn()
	return m.finish(ctx, &summary{conclude(begun, results, fleet.OutcomeOf, why), m.names, results}, unkept)
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
	m.journal.Started(host)
	m.line.begin(host)
	c := m.command
	c.Limit, c.Spool = m.view.limit(), m.app.config.Output != "text"
	if m.out != nil {
		c.Limit = 0
	}
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

// done shows a result and remembers it.
func (m *manyRun) done(host int, r gateway.Result) gateway.Result {
	outcome := fleet.OutcomeOf(r)
	m.app.began(outcome)
	m.line.end(host, outcome)
	m.journal.Done(host, remembered(r))
	m.out.result(m.names[host], r)
	m.view.done(host, r)
	m.app.log.Info("exec", "host", r.Host, "id", r.ID, "verdict", r.Verdict, "outcome", outcome, "code", gateway.Code(r.Err), "connect", r.Connect, "duration", r.Duration)
	return withoutOutput(r)
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

// recorded is an error as a record has it; nil for nil.
func recorded(err error) *runs.Error {
	if err == nil {
		return nil
	}
	return &runs.Error{Code: gateway.Code(err), Message: err.Error()}
}

// finish says how it ended, and returns the status for it. What the view could not
// keep is an error, as it is of --out.
func (m *manyRun) finish(ctx context.Context, s *summary, unkept error) error {
	a := m.app
	s.status = a.out.status(statusOf(ctx, s.results, commandOutcome, s.why))
	s.unwritten(a.out, unkept, m.out.close())
	s.run = a.endRun(m.journal, s.status)
	if v, ok := m.view.(*eventsView); ok {
		s.emit(v.seq)
	} else if a.config.Output == "text" && !a.config.Quiet && a.out.failed() == nil {
		s.say(a.out)
	}
	return a.parted(m.journal, s.status)
}

// began notes that something was begun, where it was.
func (a *app) began(outcome fleet.Outcome) {
	a.ran = a.ran || outcome != fleet.NotStarted && outcome != fleet.Skipped
}

// runs returns where runs are remembered.
func (a *app) runs() runs.Store {
	return runs.Store{Dir: stateDir("runs")}
}

// beginRun begins the record of a run, which is also closed when a signal leaves
// no time for more. What is for one host by its name is not remembered, whatever
// the verb: it would take the place of the run that run:last is about.
func (a *app) beginRun(verb, selector, command string, names []string, secrets *redact.Set) *runs.Journal {
	var store runs.Store
	if several, err := many(selector); err != nil || several {
		store = a.runs()
	}
	journal, err := store.Begin(verb, selector, command, names, secrets.String)
	if err != nil {
		a.forgotten(err)
	}
	leave := func(status int) { // there is no time left to tell
		_ = journal.Close(status)
		_ = journal.Correct(status) // it may be closed, with what the status would have been
	}
	a.leaving.Store(&leave)
	return journal
}

// forgotten warns once that a run is not remembered.
func (a *app) forgotten(err error) {
	a.forgetting.Do(func() { a.warn(fmt.Sprintf("the run is not remembered: %v", err)) })
}

// endRun closes the record and returns the run's id; empty if it is not
// remembered.
func (a *app) endRun(journal *runs.Journal, status int) (id string) {
	if err := journal.Close(status); err != nil {
		a.forgotten(err)
		return ""
	}
	return journal.ID()
}

// parted returns what a run ends with once all is said. Where the last of it
// could not be written, the record says so as well, if there is one.
func (a *app) parted(journal *runs.Journal, status int) error {
	status = a.out.status(status)
	if journal != nil {
		if err := journal.Correct(status); err != nil {
			a.forgotten(err)
		}
	}
	return ended(status)
}
