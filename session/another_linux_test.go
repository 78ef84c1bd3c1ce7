package session_test

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	"gateway/gateway"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// another is a machine that starts the shell in a session of its own, whose terminal is not
// the one on its stdin: a forced command with su -c does that.
type another struct{ transport.Transport }

func (a another) Terminal(ctx context.Context, command string, options transport.TerminalOptions) (transport.Terminal, error) {
	return a.Transport.Terminal(ctx, "exec setsid -w sh -c "+session.Quote(command), options)
}

// TestTerminalOfAnotherSession: what the shell does not control is no terminal for it. A
// deadline ends the command, and not what stands between the shell and its terminal.
func TestTerminalOfAnotherSession(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("no setsid(1)")
	}
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			tr := another{local.New(local.Config{Env: []string{"HOME=" + t.TempDir()}})}
			defer tr.Close()
			s, err := session.Open(t.Context(), tr, session.Config{Shell: shell})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			r, err := s.Run(t.Context(), session.Command{Text: "echo part; sleep 1000", Timeout: 200 * time.Millisecond})
			if r.Verdict != session.TimedOut || !errors.Is(err, context.DeadlineExceeded) || string(r.Stdout) != "part\n" || r.Ended {
				t.Errorf("got %s %q ended=%v, %v", r.Verdict, r.Stdout, r.Ended, err)
			}
			want(t, run(t, s, "echo out; echo err >&2; (exit 3)"), 3, "out\n", "err\n")
			if _, err := s.Run(t.Context(), session.Command{Text: "true", TTY: true}); s.Terminal() || gateway.Code(err) != "session.pty_refused" {
				t.Errorf("on a terminal: %v, want session.pty_refused", err)
			}
			s.Close()
			eventually(t, "no process left", func() bool { return len(processes(s.ID())) == 0 })
		})
	}
}
