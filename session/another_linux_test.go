package session_test

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	"gateway/gateway"
	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport/local"
)

// TestTerminalOfAnotherSession: a machine may start the shell in a session of its own, whose terminal
// is not the one on its stdin, as a forced command with su -c does. That is no terminal for it. A
// deadline ends the command, and not what stands between the shell and the terminal.
func TestTerminalOfAnotherSession(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		sshdtest.Skip(t, "setsid(1) is missing")
	}
	another := func(command string) string { return "exec setsid -w sh -c " + session.Quote(command) }
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			machine := altered{Transport: local.New(local.Config{Env: []string{"HOME=" + t.TempDir()}}), onTerminal: another}
			s := openOn(t, machine, session.Config{Shell: shell})
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
