package main

import (
	"context"
	"os"
	"strings"
	"sync"

	"gateway/gateway"
	"gateway/internal/phrase"
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
		if strings.HasSuffix(strings.TrimRight(phrase.Plain(seen), "\n"), phrase.Plain(question)) {
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
