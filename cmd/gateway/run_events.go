package main

import (
	"io"
	"sync"
	"time"

	"gateway/gateway"
	"gateway/script"
	"gateway/session"
)

// A scriptEvent is one line of gateway.event/v1 about a script. Beside what a
// command's events say, it names the step; a step's end is an event of its own.
type scriptEvent struct {
	Schema     string             `json:"schema"`
	Event      string             `json:"event"`
	Host       string             `json:"host,omitempty"`
	Step       string             `json:"step,omitempty"`
	Seq        int                `json:"seq"`
	Time       time.Time          `json:"time"`
	Data       *string            `json:"data,omitempty"`
	DataBase64 *string            `json:"data_base64,omitempty"`
	StepResult *script.StepResult `json:"step_result,omitempty"`
	Result     *script.Result     `json:"result,omitempty"`
}

// scriptEvents writes what happens as it happens.
type scriptEvents struct {
	sequence sequence

	mu      sync.Mutex
	streams map[string]*[3]characters // by host; guarded by mu
}

func newScriptEvents(w io.Writer) *scriptEvents {
	return &scriptEvents{sequence: sequence{w: w}, streams: map[string]*[3]characters{}}
}

func (e *scriptEvents) observer() script.Observer {
	return script.Observer{Begin: e.begin, Output: e.output, End: e.step}
}

func (e *scriptEvents) write(ev scriptEvent) {
	e.sequence.write(func(seq int, now time.Time) any {
		ev.Schema, ev.Seq, ev.Time = eventSchema, seq, now
		return ev
	})
}

func (e *scriptEvents) begin(host string, s *script.StepResult) {
	e.write(scriptEvent{Event: "start", Host: host, Step: s.Name})
}

func (e *scriptEvents) output(host string, s *script.StepResult, from session.Stream, b []byte) {
	e.data(host, s.Name, from, e.of(host)[from].next(b))
}

// of returns the streams of a host, of which one thing is told at a time.
func (e *scriptEvents) of(host string) *[3]characters {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.streams[host] == nil {
		e.streams[host] = &[3]characters{}
	}
	return e.streams[host]
}

func (e *scriptEvents) data(host, step string, from session.Stream, b []byte) {
	if len(b) == 0 {
		return
	}
	text, base := gateway.Text(b)
	e.write(scriptEvent{Event: from.String(), Host: host, Step: step, Data: text, DataBase64: base})
}

func (e *scriptEvents) step(host string, s *script.StepResult) {
	streams := e.of(host)
	for from := range streams {
		e.data(host, s.Name, session.Stream(from), streams[from].rest())
	}
	e.write(scriptEvent{Event: "step", Host: host, Step: s.Name, StepResult: s})
}

func (e *scriptEvents) done(r *script.Result) {
	e.write(scriptEvent{Event: "result", Host: r.Host, Result: r})
}

func (e *scriptEvents) end(s *summary[script.Result]) { s.emit(&e.sequence) }
