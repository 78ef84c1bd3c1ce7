package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/runs"
)

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

// A fleetRun is what exec, run or cp does on many hosts. R is what comes of one.
type fleetRun[R any] struct {
	app   *app
	names []string
	plan  fleet.Plan
	task  fleet.Task[R] // its Done shows what came of a host
	line  *progress
	dry   bool // it only says what would be done, and is not remembered

	// record is what is remembered of a host.
	record func(R) runs.Host
	// counts is a host's outcome as the status goes by it.
	counts func(R) fleet.Outcome
	// end writes what is known only when all hosts are done, and says how it went.
	end func(*summary[R])

	journal *runs.Journal
	begun   time.Time
}

// begin begins the record of the run, which is also closed when a signal leaves
// no time for more. What is for one host by its name is not remembered, whatever
// the verb: it would take the place of the run that run:last is about.
func (f *fleetRun[R]) begin(verb, selector, command string, mask func(string) string) {
	var store runs.Store
	if several, err := many(selector); (err != nil || several) && !f.dry {
		if store = f.app.runs(); store.Dir == "" {
			f.app.warn(unremembered)
		}
	}
	journal, _ := store.Begin(verb, selector, command, f.names, mask) // the end says whether there is a record then
	leave := func(status int) {                                       // there is no time left to tell
		_ = journal.Close(status)
		_ = journal.Correct(status) // it may be closed, with what the status would have been
	}
	f.app.leaving.Store(&leave)
	f.journal, f.begun = journal, time.Now()
}

// run does it on all hosts, says how it went, and returns the status for it.
func (f *fleetRun[R]) run(ctx context.Context) error {
	task := f.task
	task.Run = func(ctx context.Context, host int) R {
		f.journal.Started(host)
		f.line.begin(host)
		return f.task.Run(ctx, host)
	}
	task.Done = func(host int, r R) R {
		outcome := f.task.Outcome(r)
		f.app.ran = f.app.ran || !f.dry && outcome != fleet.NotStarted && outcome != fleet.Skipped
		f.line.end(host, outcome)
		f.journal.Done(host, f.record(r))
		return f.task.Done(host, r)
	}
	results, why := fleet.Run(ctx, len(f.names), f.plan, task)
	f.line.stop()
	s := f.conclude(ctx, results, why)
	s.run = f.close(s.status)
	f.end(s)
	status := f.app.out.status(s.status) // the last of it may not be written
	f.correct(status)
	return ended(status)
}

// conclude sums up what became of the hosts.
func (f *fleetRun[R]) conclude(ctx context.Context, results []R, why error) *summary[R] {
	s := &summary[R]{app: f.app, ctx: ctx, took: time.Since(f.begun), why: why, results: results, counts: make(map[string]int)}
	for _, r := range results {
		s.counts[string(f.task.Outcome(r))]++
	}
	s.status = f.app.out.status(statusOf(ctx, results, f.counts, why))
	return s
}

// close closes the record and returns the run's id; empty if it is not
// remembered.
func (f *fleetRun[R]) close(status int) (id string) {
	f.forgotten(f.journal.Close(status))
	return f.journal.ID()
}

// correct gives a record that is closed another status.
func (f *fleetRun[R]) correct(status int) { f.forgotten(f.journal.Correct(status)) }

// forgotten warns once of what is not remembered.
func (f *fleetRun[R]) forgotten(err error) {
	if err == nil {
		return
	}
	what := "the run is not remembered"
	if f.journal.ID() != "" {
		what = "how the run ended is not remembered"
	}
	f.app.forgetting.Do(func() { f.app.warn(fmt.Sprintf("%s: %v", what, err)) })
}

// recorded is an error as a record has it; nil for nil.
func recorded(err error) *runs.Error {
	if err == nil {
		return nil
	}
	return &runs.Error{Code: gateway.Code(err), Message: err.Error()}
}

// unremembered warns of what runs returns where there is no place for it.
const unremembered = "no run is remembered: set HOME or XDG_STATE_HOME"

// runs returns where runs are remembered.
func (a *app) runs() runs.Store {
	return runs.Store{Dir: stateDir("runs")}
}
