package main

import (
	"slices"

	"gateway/gateway"
	"gateway/internal/phrase"
	"gateway/session"
)

// half is how much of a stream a result holds of its beginning, and of its end.
const half = 512 << 10

// heard is what has come of a stream, for a result that the daemon does not give
// any more.
type heard struct {
	data  []byte // at most a good half more than two
	total int64
}

func (h *heard) add(b []byte) {
	h.total += int64(len(b))
	h.data = append(h.data, b...)
	// What is next to the cuts shows later which characters they go through.
	const end = half + phrase.Margin
	if len(h.data) > 3*end {
		h.data = append(h.data[:end], h.data[len(h.data)-end:]...)
	}
}

// bytes returns the beginning and the end, and whether something lacks between them.
func (h *heard) bytes() (b []byte, cut bool) {
	if h.total <= 2*half {
		return h.data, false
	}
	first, last := phrase.Ends(h.data, h.data, half, half)
	return slices.Concat(first, last), true
}

// soFar returns what this call knows of a command that has started, with what it
// has got of the output.
func (e *execution) soFar(verdict session.Verdict, err error) gateway.Result {
	r := gateway.Result{ID: e.command.ID, Host: e.command.Host, Session: e.command.Session, Command: e.run.Text, Err: err, Result: session.Result{
		Verdict: verdict, ExitCode: -1, Streams: session.Split, Started: e.command.StartedAt, Truncated: e.dropped > 0,
	}}
	for from, h := range e.heard {
		data, cut := h.bytes()
		r.Truncated = r.Truncated || cut
		switch session.Stream(from) {
		case session.Stdout:
			r.Stdout, r.StdoutBytes = data, h.total
		case session.Stderr:
			r.Stderr, r.StderrBytes = data, h.total
		case session.Terminal:
			r.Terminal = data
		}
	}
	return r
}
