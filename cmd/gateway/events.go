package main

import (
	"errors"
	"io"
	"sync"
	"time"

	"gateway/gateway"
	"gateway/internal/phrase"
	"gateway/session"
)

const eventSchema = "gateway.event/v1"

// An event is one line of gateway.event/v1, in the order of the contract.
type event struct {
	Schema     string          `json:"schema"`
	Event      string          `json:"event"`
	Host       string          `json:"host"`
	Seq        int             `json:"seq"`
	Time       time.Time       `json:"time"`
	Data       *string         `json:"data,omitempty"`
	DataBase64 *string         `json:"data_base64,omitempty"`
	Result     *gateway.Result `json:"result,omitempty"`
}

// A sequence writes the events of a run, numbered in the order in which they are
// written.
type sequence struct {
	w io.Writer

	mu  sync.Mutex
	n   int   // guarded by mu
	err error // the first; guarded by mu
}

// write writes what number makes of the next number and of the time.
func (s *sequence) write(number func(seq int, now time.Time) any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	if err := writeJSON(s.w, number(s.n, time.Now().UTC().Truncate(time.Microsecond))); s.err == nil {
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

// events writes what happens as it happens.
type events struct {
	sequence *sequence

	mu      sync.Mutex
	host    string        // guarded by mu
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
	e.sequence.write(func(seq int, now time.Time) any {
		ev.Schema, ev.Host, ev.Seq, ev.Time = eventSchema, e.host, seq, now
		return ev
	})
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
	e.mu.Lock()
	defer e.mu.Unlock()
	e.flush()
	e.write(event{Event: "result", Result: &r})
	e.done = true
}
