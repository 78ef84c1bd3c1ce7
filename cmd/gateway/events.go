package main

import (
	"errors"
	"io"
	"sync"
	"time"

	"gateway/gateway"
	"gateway/internal/phrase"
	"gateway/script"
	"gateway/session"
)

const eventSchema = "gateway.event/v1"

// An event is one line of gateway.event/v1, in the order of the contract. It has what
// its name is about, and nothing else.
type event struct {
	Schema     string    `json:"schema"`
	Event      string    `json:"event"`
	Host       *string   `json:"host,omitempty"` // nil: it is about all of them
	Step       string    `json:"step,omitempty"` // of a script
	Seq        int       `json:"seq"`
	Time       time.Time `json:"time"`
	Data       *string   `json:"data,omitempty"`
	DataBase64 *string   `json:"data_base64,omitempty"`
	*fileEvent
	*progressEvent
	StepResult *script.StepResult `json:"step_result,omitempty"`
	Result     any                `json:"result,omitempty"`
	*summaryEvent
	DurationMS *int64 `json:"duration_ms,omitempty"` // of a file, or of all
}

// A summaryEvent is how a run on many hosts has ended.
type summaryEvent struct {
	Run    string         `json:"run"`
	Hosts  int            `json:"hosts"`
	Counts map[string]int `json:"counts"`
	Status int            `json:"status"`
}

// A sequence writes the events of a run, numbered in the order in which they are
// written.
type sequence struct {
	w io.Writer

	mu  sync.Mutex
	n   int   // guarded by mu
	err error // the first; guarded by mu
}

func (s *sequence) write(ev event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	ev.Schema, ev.Seq, ev.Time = eventSchema, s.n, time.Now().UTC().Truncate(time.Microsecond)
	if err := writeJSON(s.w, ev); s.err == nil {
		s.err = err
	}
}

// failed returns what went wrong first.
func (s *sequence) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// characters cut a stream into pieces that are text wherever it was cut before.
type characters struct{ tail []byte } // the beginning of one whose end has not come yet

// next returns what is whole with b.
func (c *characters) next(b []byte) []byte {
	b = append(c.tail, b...)
	whole := len(b) - phrase.Unfinished(b)
	c.tail = append([]byte(nil), b[whole:]...)
	return b[:whole]
}

// rest returns what is left.
func (c *characters) rest() []byte {
	tail := c.tail
	c.tail = nil
	return tail
}

// events writes what happens on a host as it happens.
type events struct {
	sequence *sequence

	mu      sync.Mutex
	host    string        // guarded by mu
	step    string        // of a script, while it runs; guarded by mu
	done    bool          // what comes behind the result is not told; guarded by mu
	streams [3]characters // guarded by mu
}

func (e *events) emit(ev event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.write(ev)
}

// write needs mu.
func (e *events) write(ev event) {
	if e.done {
		return
	}
	ev.Host, ev.Step = &e.host, e.step
	e.sequence.write(ev)
}

// data needs mu. Nothing is no event.
func (e *events) data(from session.Stream, b []byte) {
	if len(b) > 0 {
		e.text(from.String(), b)
	}
}

// text needs mu.
func (e *events) text(name string, b []byte) {
	text, base := gateway.Text(b)
	e.write(event{Event: name, Data: text, DataBase64: base})
}

func (e *events) stream(from session.Stream, b []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.data(from, e.streams[from].next(b))
}

// flush writes what is left of the streams. It needs mu.
func (e *events) flush() {
	for from := range e.streams {
		e.data(session.Stream(from), e.streams[from].rest())
	}
}

func (e *events) prompt(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.flush()
	e.text("prompt", []byte(text))
}

func (e *events) result(r gateway.Result) {
	if errors.Is(r.Err, session.ErrNeedsInput) {
		e.prompt(r.Prompt)
	}
	e.end(&r)
}

// end writes the last event of a host.
func (e *events) end(result any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.flush()
	e.write(event{Event: "result", Result: result})
	e.done = true
}

// An eventLog writes the events of many hosts.
type eventLog struct {
	sequence

	mu    sync.Mutex
	hosts map[string]*events // guarded by mu
}

func newEventLog(w io.Writer) *eventLog {
	return &eventLog{sequence: sequence{w: w}, hosts: make(map[string]*events)}
}

// of returns the events of a host.
func (l *eventLog) of(host string) *events {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hosts[host] == nil {
		l.hosts[host] = &events{host: host, sequence: &l.sequence}
	}
	return l.hosts[host]
}
