package session_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// slowLines is the stdin of a shell that is handed what stands behind the first line of a frame
// a while later.
type slowLines struct {
	io.WriteCloser
	mu   sync.Mutex
	held []byte // what is handed on later; nil: nothing is
}

func (w *slowLines) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held != nil {
		w.held = append(w.held, b...)
		return len(b), nil
	}
	first, rest, _ := strings.Cut(string(b), "\n")
	if rest == "" || !strings.HasPrefix(first, " ") {
		return w.WriteCloser.Write(b)
	}
	w.held = []byte(rest)
	time.AfterFunc(300*time.Millisecond, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		_, _ = w.WriteCloser.Write(w.held)
		w.held = nil
	})
	if _, err := io.WriteString(w.WriteCloser, first+"\n"); err != nil {
		return 0, err
	}
	return len(b), nil
}

// TestInterruptWithinAFrame: without a terminal, an interrupt throws nothing away that the shell is
// yet to read. It runs none of that: neither what only quotes make data, nor a command that
// was interrupted.
func TestInterruptWithinAFrame(t *testing.T) {
	t.Parallel()
	for _, name := range shells {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			piecemeal := func(_ string, p *transport.Pipe) { p.Stdin = &slowLines{WriteCloser: p.Stdin} }
			s := openOn(t, altered{Transport: local.New(local.Config{}), pipe: piecemeal}, session.Config{Shell: name, NoTerminal: true})
			shell := pidOf(t, s)
			ran := filepath.Join(t.TempDir(), "ran")
			deep := "/" + strings.Repeat("./", 200) + "tmp"
			for _, command := range []session.Command{
				{Text: "sleep 30; if false; then\n touch " + ran + "\nfi\n"},
				{Text: "touch " + ran + "; sleep 30", Cwd: deep},
				{Text: "touch " + ran + "; sleep 30; : " + strings.Repeat("x", 900)},
			} {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				command.Started = func() {
					_ = s.Interrupt(session.Int) // first: the signal alone may end the command
					_ = syscall.Kill(shell, syscall.SIGINT)
				}
				r, err := s.Run(ctx, command)
				cancel()
				if !errors.Is(err, session.ErrInterrupted) || r.Ended {
					t.Fatalf("%.40q: %s, ended %v, %v", command.Text, r.Verdict, r.Ended, err)
				}
				want(t, run(t, s, "echo fine"), 0, "fine\n", "")
				if _, err := os.Stat(ran); err == nil && strings.HasPrefix(command.Text, "sleep") {
					t.Errorf("%.40q: what is not to be run has been", command.Text)
				}
				os.Remove(ran)
			}
		})
	}
}
