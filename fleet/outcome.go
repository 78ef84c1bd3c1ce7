package fleet

import (
	"errors"

	"gateway/gateway"
	"gateway/session"
	"gateway/transport"
)

// An Outcome says in one word how it went on a host.
type Outcome string

// The outcomes, which selectors know too (run:last/failed).
const (
	OK          Outcome = "ok"
	Failed      Outcome = "failed" // a status other than 0, death by signal, or an input that is not whole
	TimedOut    Outcome = "timed_out"
	Interrupted Outcome = "interrupted"
	NotStarted  Outcome = "not_started"
	Unknown     Outcome = "unknown"
	Skipped     Outcome = "skipped" // not begun: the run was ended before
)

// Outcomes lists them, as a summary does.
var Outcomes = []Outcome{OK, Failed, TimedOut, Interrupted, NotStarted, Unknown, Skipped}

// errSkipped is what the error of a skipped host matches.
var errSkipped = errors.New("skipped")

// skipped is why the command was not begun on a host.
func skipped(what string, cause error) error {
	return &transport.Error{Code: "cmd.interrupted", Message: what + ": " + cause.Error(), Err: errors.Join(errSkipped, cause)}
}

// OutcomeOf returns how it went.
func OutcomeOf(r gateway.Result) Outcome {
	switch r.Verdict {
	case session.Exited, session.Signaled:
		if r.Verdict == session.Exited && r.ExitCode == 0 && r.Err == nil {
			return OK
		}
		return Failed
	case session.TimedOut:
		return TimedOut
	case session.Interrupted:
		return Interrupted
	case session.NotStarted:
		if errors.Is(r.Err, errSkipped) {
			return Skipped
		}
		return NotStarted
	}
	return Unknown
}
