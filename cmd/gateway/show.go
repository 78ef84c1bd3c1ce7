package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"gateway/gateway"
	"gateway/internal/phrase"
	"gateway/script"
	"gateway/session"
)

// show shows one command and its result in the format that was asked for: as
// it comes in text, as one object at the end, or as one event a line.
type show struct {
	out    *output
	events *events // nil unless the format is jsonl

	mu sync.Mutex
	// seen is the end of what each stream has shown on a terminal. Guarded by mu.
	seen [3][]byte
}

func (a *app) newShow(host string) *show {
	s := &show{out: a.out}
	if a.out.format == "jsonl" {
		s.events = &events{host: host, sequence: &sequence{w: a.out}}
	}
	return s
}

// on sets the host, where it is known later than the command.
func (s *show) on(host string) {
	if s.events != nil {
		s.events.mu.Lock()
		defer s.events.mu.Unlock()
		s.events.host = host
	}
}

// output takes a piece of a stream.
func (s *show) output(from session.Stream, b []byte) {
	switch {
	case s.events != nil:
		s.events.stream(from, b)
	case s.out.format == "json":
	case from == session.Stdout:
		_, _ = s.out.Write(b) // the output remembers, and ends the command
		s.shown(from, s.out.stdout, b)
	case from == session.Terminal && s.out.failed() != nil:
		// What an interrupt leaves on the terminal is nobody's any more.
	default:
		_, _ = s.out.errors().Write(b)
		s.shown(from, s.out.stderr, b)
	}
}

// maxQuestion is as much of a stream as a session looks for a question in.
const maxQuestion = 4096

// shown notes what a stream has shown, where that is a terminal.
func (s *show) shown(from session.Stream, where *os.File, b []byte) {
	if !isTerminal(where) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := append(s.seen[from], b[max(0, len(b)-maxQuestion):]...)
	s.seen[from] = append(seen[:0], seen[max(0, len(seen)-maxQuestion):]...)
}

// sees reports whether the person sees a question already. The streams come in
// no order, so it need not be what was shown last.
func (s *show) sees(question string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seen := range s.seen {
		if strings.HasSuffix(strings.TrimRight(script.Plain(seen), "\n"), script.Plain([]byte(question))) {
			return true
		}
	}
	return false
}

// asker returns an asker that tells about a command's question first, and leaves
// it out where the person sees it already.
func (s *show) asker(ask asker) asker {
	if ask == nil {
		return nil
	}
	return func(ctx context.Context, q gateway.Question) (string, error) {
		if q.Kind == gateway.AskCommand {
			if s.events != nil {
				s.events.prompt(q.Prompt)
			}
			if s.sees(q.Prompt) {
				q.Prompt = ""
			}
			q.Prompt = phrase.End(q.Prompt, maxPrompt)
		}
		return ask(ctx, q)
	}
}

// started tells that the command is about to be sent.
func (s *show) started() {
	if s.events != nil {
		s.events.emit(event{Event: "start"})
	}
}

// result shows how it ended. In text that is nothing, unless something is
// wrong that the exit status alone does not say.
func (s *show) result(r gateway.Result) {
	switch {
	case s.events != nil:
		s.events.result(r)
	case s.out.format == "json":
		_ = s.out.json(r) // the output remembers
	case r.Err != nil && s.out.failed() == nil:
		s.out.fail(r.Err)
	}
}

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
	whole := len(b) - unfinished(b)
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

// unfinished returns how many bytes at the end of b may be the beginning of a
// character.
func unfinished(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return n
			}
			return 0
		}
	}
	return 0
}
