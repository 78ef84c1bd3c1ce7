package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/hosts"
)

// statusOf returns the exit status of many hosts, by how it went on each. why is
// what kept hosts from being tried, or ended them: a signal, a threshold, or that
// nobody would get the output, or have the input. In the last case what was ended
// is not known to be done, and what was not tried did not start.
func statusOf[R any](ctx context.Context, results []R, outcome func(R) fleet.Outcome, why error) int {
	if signal, ok := interrupted(context.Cause(ctx)); ok {
		return signal.status()
	}
	of := map[fleet.Outcome]int{
		fleet.Failed: statusFailed, fleet.TimedOut: statusSomeTimedOut,
		fleet.NotStarted: statusSomeNotBegun, fleet.Skipped: statusSomeNotBegun,
		fleet.Unknown: statusSomeUnknown, fleet.Interrupted: statusSomeUnknown,
	}
	seen := make(map[int]bool)
	if errors.Is(why, fleet.ErrStopped) {
		of[fleet.Skipped], of[fleet.Interrupted] = statusStopped, statusStopped
		seen[statusStopped] = true // also where what it ended was over by then
	}
	for _, r := range results {
		seen[of[outcome(r)]] = true
	}
	for _, status := range []int{statusSomeUnknown, statusSomeNotBegun, statusSomeTimedOut, statusStopped, statusFailed} {
		if seen[status] {
			return status
		}
	}
	return 0
}

// commandOutcome is the outcome of a command as it counts for the status: one that
// got no further than its prompt did not start.
func commandOutcome(r gateway.Result) fleet.Outcome {
	outcome := fleet.OutcomeOf(r)
	if outcome == fleet.Interrupted && gateway.Code(r.Err) == "cmd.needs_input" {
		return fleet.NotStarted
	}
	return outcome
}

// A summary is what is left to say when all hosts are done. R is what came of one.
type summary[R any] struct {
	app     *app
	ctx     context.Context
	run     string // its id; empty if it is not remembered
	took    time.Duration
	why     error // what kept hosts from being tried, or ended them
	status  int
	results []R
	counts  map[string]int // of the hosts, by outcome
}

// unwritten tells what could not be written in the end, which is no success.
func (s *summary[R]) unwritten(err error) {
	if err == nil {
		return
	}
	s.app.out.fail(err)
	if signal, ok := interrupted(context.Cause(s.ctx)); ok {
		s.status = signal.status() // it may have come while this was written
	} else if s.status == 0 {
		s.status = statusFailed
	}
}

// say tells people, on stderr: how many are ok, what kept the others from being
// tried, and lines about them. Who has closed stdout wants to know no more.
func (s *summary[R]) say(of string, lines []string) {
	out := s.app.out
	if s.app.config.Quiet || errors.Is(out.failed(), syscall.EPIPE) {
		return
	}
	ok, all := s.counts[string(fleet.OK)], len(s.results)
	head := fmt.Sprintf("gateway: %d of %d%s ok in %s", ok, all, of, lasted(s.took))
	if s.run != "" {
		head += ", run " + s.run
	}
	text := []string{out.paintHead(ok == all, head)}
	if s.why != nil && !errors.Is(s.why, out.failed()) { // which is said at the end
		text = append(text, "  "+visible(s.why.Error()))
	}
	out.say(strings.Join(append(text, lines...), "\n"))
}

// emit writes it as the last event.
func (s *summary[R]) emit(to *eventLog) {
	to.write(event{
		Event: "summary", summaryEvent: &summaryEvent{s.run, len(s.results), s.counts, s.status},
		DurationMS: new(s.took.Milliseconds()),
	})
}

// sayCommands says how a command went: what is not ok by its outcome, with the hosts
// folded.
func sayCommands(s *summary[gateway.Result]) {
	type line struct {
		outcome fleet.Outcome
		ending  string
	}
	var order []line
	groups := make(map[line][]string)
	for _, r := range s.results {
		outcome := fleet.OutcomeOf(r)
		if outcome == fleet.OK {
			continue
		}
		l := line{outcome, ending(r)}
		if groups[l] == nil {
			order = append(order, l)
		}
		groups[l] = append(groups[l], r.Host)
	}
	slices.SortStableFunc(order, func(a, b line) int {
		return slices.Index(fleet.Outcomes, a.outcome) - slices.Index(fleet.Outcomes, b.outcome)
	})
	width := 0
	for _, l := range order {
		width = max(width, len(l.ending))
	}
	var text []string
	for _, l := range order {
		entry := fmt.Sprintf("  %4d  %-*s  %s", len(groups[l]), width, l.ending, hosts.FoldNames(groups[l]))
		text = append(text, entry)
	}
	s.say("", text)
}

// withoutOutput is what is kept of a result once it has been shown.
func withoutOutput(r gateway.Result) gateway.Result {
	r.Stdout, r.Stderr, r.Terminal = nil, nil, nil
	return r
}
