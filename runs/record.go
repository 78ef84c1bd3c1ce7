// Package runs remembers what was run on many hosts: one file for each run,
// without any output, so that what failed can be run again.
package runs

import (
	"slices"
	"time"
)

// recordSchema is the schema of a Record in JSON.
const recordSchema = "gateway.run/v1"

// A Record is what is remembered of one run.
type Record struct {
	Schema string `json:"schema"`
	ID     string `json:"id"` // a ULID
	// Verb is the command of gateway: exec, say.
	Verb      string     `json:"verb"`
	Selector  string     `json:"selector"`
	Command   string     `json:"command"`
	StartedAt time.Time  `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"` // null: it runs, or was killed
	// Running says that its process lives; false in a file.
	Running bool `json:"running"`
	// Status is gateway's own exit status; null as long as EndedAt is.
	Status *int   `json:"status"`
	Hosts  []Host `json:"hosts"`
}

// A Host is how it went on one host.
type Host struct {
	Host       string     `json:"host"`
	Outcome    string     `json:"outcome"` // a word that a selector knows; of a run that goes on also running and pending
	Verdict    string     `json:"verdict"`
	ExitCode   *int       `json:"exit_code"`
	Signal     *string    `json:"signal"`
	Line       int        `json:"line,omitempty"` // of the script
	StartedAt  *time.Time `json:"started_at"`
	DurationMS int64      `json:"duration_ms"`
	ConnectMS  int64      `json:"connect_ms"`
	Error      *Error     `json:"error"`
}

// Error is an error of a host.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// outcome words with a meaning here; the others stand for themselves.
const (
	outcomeOK      = "ok"
	outcomeFailed  = "failed"
	outcomeUnknown = "unknown"
	outcomeSkipped = "skipped"

	// Only as long as the run goes on.
	outcomeRunning = "running"
	outcomePending = "pending"
)

const verdictNotStarted = "not_started"

// Counts returns how many hosts had each outcome.
func (r *Record) Counts() map[string]int {
	counts := make(map[string]int)
	for _, h := range r.Hosts {
		counts[h.Outcome]++
	}
	return counts
}

// With returns the hosts that had one of the outcomes, or all if there is none.
// "failed" stands for all that were tried and are not ok.
func (r *Record) With(outcomes []string) []string {
	var names []string
	for _, h := range r.Hosts {
		if len(outcomes) == 0 || slices.ContainsFunc(outcomes, h.had) {
			names = append(names, h.Host)
		}
	}
	return names
}

func (h *Host) had(outcome string) bool {
	if outcome == outcomeFailed {
		return h.Outcome != outcomeOK && h.Outcome != outcomeSkipped && !h.toCome()
	}
	return h.Outcome == outcome
}

// toCome reports whether the outcome is not there yet.
func (h *Host) toCome() bool { return h.Outcome == outcomeRunning || h.Outcome == outcomePending }

// Bad returns of how many hosts it is known that they are not ok.
func (r *Record) Bad() int {
	bad := 0
	for _, h := range r.Hosts {
		if h.Outcome != outcomeOK && !h.toCome() {
			bad++
		}
	}
	return bad
}
