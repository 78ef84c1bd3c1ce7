package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gateway/fleet"
	"gateway/gateway"
	"gateway/hosts"
)

// manyStatus returns the exit status of a command on many hosts. why is what
// kept hosts from being tried, or ended them.
func manyStatus(ctx context.Context, results []gateway.Result, why error) int {
	if signal, ok := interrupted(context.Cause(ctx)); ok {
		return signal.status()
	}
	seen := make(map[int]bool)
	for _, r := range results {
		switch fleet.OutcomeOf(r) {
		case fleet.Unknown:
			seen[statusSomeUnknown] = true
		case fleet.NotStarted:
			seen[statusSomeNotBegun] = true
		case fleet.TimedOut:
			seen[statusSomeTimedOut] = true
		case fleet.Failed:
			seen[statusFailed] = true
		case fleet.Interrupted:
			if why == nil || gateway.Code(r.Err) == "cmd.needs_input" {
				seen[statusSomeNotBegun] = true // it got no further than its prompt
			}
		}
	}
	if why != nil {
		seen[statusStopped] = true
	}
	return firstStatus(seen)
}

// firstStatus returns the status of several that says the most.
func firstStatus(seen map[int]bool) int {
	for _, status := range []int{statusSomeUnknown, statusSomeNotBegun, statusSomeTimedOut, statusStopped, statusFailed} {
		if seen[status] {
			return status
		}
	}
	return 0
}

// A summary is what is left to say when all hosts are done.
type summary struct {
	run     string // its id; empty if it is not remembered
	names   []string
	results []gateway.Result
	took    time.Duration
	why     error // see manyStatus
	status  int
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

func (s *summary) counts() map[string]int {
	counts := make(map[string]int)
	for _, r := range s.results {
		counts[string(fleet.OutcomeOf(r))]++
	}
	return counts
}

// emit writes the summary as an event.
func (s *summary) emit(v *eventsView) {
	v.seq.write(v.out, func(seq int, now time.Time) any {
		return summaryEvent{eventSchema, "summary", seq, now, s.run, len(s.results), s.counts(), s.status, s.took.Milliseconds()}
	})
}

// say writes the summary for people, on stderr: what is not ok by its outcome,
// with the hosts folded.
func (s *summary) say(out *output) {
	counts := s.counts()
	ok := counts[string(fleet.OK)]
	head := fmt.Sprintf("gateway: %d of %d ok in %v", ok, len(s.results), s.took.Round(10*time.Millisecond))
	if s.run != "" {
		head += ", run " + s.run
	}
	text := []string{head}
	if s.why != nil {
		text = append(text, "  "+visible(s.why.Error()))
	}
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
	if out.errColor {
		color := green
		if ok < len(s.results) {
			color = red
		}
		text[0] = "\x1b[" + color + "m" + text[0] + "\x1b[0m"
	}
	out.say(strings.Join(text, "\n"))
}

// withoutOutput is what is kept of a result once it has been shown.
func withoutOutput(r gateway.Result) gateway.Result {
	r.Stdout, r.Stderr, r.Terminal = nil, nil, nil
	return r
}
