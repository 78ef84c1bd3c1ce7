package session_test

import (
	"bytes"
	"context"
	"io"
	"sync/atomic"
	"testing"

	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// slowing is what a keeper is told by, which takes its time for the next flush that a
// session asks for, once it is told to.
type slowing struct {
	io.WriteCloser
	slow *atomic.Bool
}

func (w slowing) Write(b []byte) (int, error) {
	if flush := []byte("( printf \"\\036F"); bytes.HasPrefix(b, flush) && w.slow.CompareAndSwap(true, false) {
		_, err := w.WriteCloser.Write(append([]byte("( sleep 0.3; "), b[2:]...))
		return len(b), err
	}
	return w.WriteCloser.Write(b)
}

// TestFlushThatIsLate: the sign of life that a command's end asks for comes when other
// commands have run since, and is none of their output.
func TestFlushThatIsLate(t *testing.T) {
	t.Parallel()
	slow := new(atomic.Bool)
	s := openOn(t, altered{Transport: local.New(local.Config{}), pipe: func(_ string, p *transport.Pipe) { p.Stdin = slowing{p.Stdin, slow} }}, session.Config{Shell: "sh"})
	for range 1000 {
		slow.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		r, _ := s.Run(ctx, session.Command{Text: ":", Started: func() { go cancel() }})
		cancel()
		if slow.Load() || r.Verdict != session.Exited { // it was not asked for, or has streams of its own now
			continue
		}
		for range 20 {
			want(t, run(t, s, ":"), 0, "", "")
		}
		want(t, run(t, s, "sleep 0.5"), 0, "", "")
		return
	}
	t.Error("no command ended by itself as it was cancelled")
}
