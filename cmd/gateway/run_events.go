package main

import (
	"gateway/script"
	"gateway/session"
)

// scriptEvents writes what happens as it happens. Beside what a command's events
// say, they name the step; a step's end is an event of its own.
type scriptEvents struct{ *eventLog }

func (e scriptEvents) observer() script.Observer {
	return script.Observer{Begin: e.begin, Output: e.output, End: e.step}
}

func (e scriptEvents) begin(host string, s *script.StepResult) { e.of(host).begin(s.Name) }

func (e scriptEvents) output(host string, _ *script.StepResult, from session.Stream, b []byte) {
	e.of(host).stream(from, b)
}

func (e scriptEvents) step(host string, s *script.StepResult) { e.of(host).stepped(s) }

func (e scriptEvents) done(r *script.Result) { e.of(r.Host).end(r) }

func (e scriptEvents) end(s *summary[script.Result]) { s.emit(e.eventLog) }

// begin begins a step.
func (e *events) begin(step string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.step = step
	e.write(event{Event: "start"})
}

// stepped tells of a step's end, which may have had no beginning.
func (e *events) stepped(s *script.StepResult) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.step = s.Name
	e.flush()
	e.write(event{Event: "step", StepResult: s})
	e.step = ""
}
