package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// A conclusion is what exec, run and cp all say when the hosts are done.
type conclusion struct {
	run    string // its id; empty if it is not remembered
	took   time.Duration
	why    error // what kept hosts from being tried, or ended them
	status int
	hosts  int
	counts map[string]int // of the hosts, by outcome
}

// conclude sums up what became of hosts on which something was begun at a time.
func conclude[R any](begun time.Time, results []R, outcome func(R) fleet.Outcome, why error) conclusion {
	c := conclusion{took: time.Since(begun), why: why, hosts: len(results), counts: make(map[string]int)}
	for _, r := range results {
		c.counts[string(outcome(r))]++
	}
	return c
}

// ok is how many hosts went well.
func (c *conclusion) ok() int { return c.counts[string(fleet.OK)] }

// unwritten tells what could not be written in the end, which is no success.
func (c *conclusion) unwritten(out *output, errs ...error) {
	for _, err := range errs {
		if err == nil {
			continue
		}
		out.fail(err)
		if c.status == 0 {
			c.status = statusFailed
		}
	}
}

// begin is how a summary begins for people: how many are ok, and what kept the others from
// being tried.
func (c *conclusion) begin(of string) []string {
	head := fmt.Sprintf("gateway: %d of %d%s ok in %s", c.ok(), c.hosts, of, lasted(c.took))
	if c.run != "" {
		head += ", run " + c.run
	}
	if c.why == nil {
		return []string{head}
	}
	return []string{head, "  " + visible(c.why.Error())}
}

// A summaryEvent is the last event of a run.
type summaryEvent struct {
	Schema     string         `json:"schema"`
	Event      string         `json:"event"`
	Seq        int            `json:"seq"`
	Time       time.Time      `json:"time"`
	Run        string         `json:"run"`
	Hosts      int            `json:"hosts"`
	Counts     map[string]int `json:"counts"`
	Status     int            `json:"status"`
	DurationMS int64          `json:"duration_ms"`
}

// emit writes it as an event.
func (c *conclusion) emit(to *sequence) {
	to.write(func(seq int, now time.Time) any {
		return summaryEvent{eventSchema, "summary", seq, now, c.run, c.hosts, c.counts, c.status, c.took.Milliseconds()}
	})
}

// A summary is what is left to say when all hosts are done.
type summary struct {
	conclusion
	names   []string
	results []gateway.Result
}

// say writes the summary for people, on stderr: what is not ok by its outcome,
// with the hosts folded.
func (s *summary) say(out *output) {
	text := s.begin("")
	text[0] = out.paintHead(s.ok() == s.hosts, text[0])
	type line struct {
		outcome fleet.Outcome
		ending  string
	}
	var order []line
	groups := make(map[line][]string)
	for i, r := range s.results {
		outcome := fleet.OutcomeOf(r)
		if outcome == fleet.OK {
			continue
		}
		l := line{outcome, ending(r)}
		if groups[l] == nil {
			order = append(order, l)
		}
		groups[l] = append(groups[l], s.names[i])
	}
	slices.SortStableFunc(order, func(a, b line) int {
		return slices.Index(fleet.Outcomes, a.outcome) - slices.Index(fleet.Outcomes, b.outcome)
	})
	width := 0
	for _, l := range order {
		width = max(width, len(l.ending))
	}
	for _, l := range order {
		entry := fmt.Sprintf("  %4d  %-*s  %s", len(groups[l]), width, l.ending, hosts.FoldNames(groups[l]))
		text = append(text, entry)
	}
	out.say(strings.Join(text, "\n"))
}

// withoutOutput is what is kept of a result once it has been shown.
func withoutOutput(r gateway.Result) gateway.Result {
	r.Stdout, r.Stderr, r.Terminal = nil, nil, nil
	return r
}
