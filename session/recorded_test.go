package session_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"gateway/gateway"
	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport/local"
)

// recording starts a command on a terminal of its own, as a forced command with script(1) does.
func recording(command string) string {
	return "exec script -qec " + session.Quote(command) + " /dev/null"
}

// TestRecorded: where there is no other way than a terminal, that carries all, and nothing
// but what the command wrote.
func TestRecorded(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("script"); err != nil {
		sshdtest.Skip(t, "no script(1)")
	}
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			tr := local.New(local.Config{Env: []string{"HOME=" + t.TempDir(), "XDG_RUNTIME_DIR=" + t.TempDir(), "SSH_TTY=/dev/pts/another"}})
			s := openOn(t, altered{Transport: tr, onTerminal: recording, onPipe: recording}, session.Config{Shell: shell})
			for range 3 {
				r := run(t, s, "echo out; echo err >&2; (exit 3)")
				if string(r.Stdout) != "out\nerr\n" || r.ExitCode != 3 || r.Streams != session.OnTerminal {
					t.Errorf("got %d %q %q on %s, want all on the terminal", r.ExitCode, r.Stdout, r.Stderr, r.Streams)
				}
			}
			r, err := s.Run(t.Context(), session.Command{Text: "echo part; sleep 1000", Timeout: 200 * time.Millisecond})
			if r.Verdict != session.TimedOut || !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(string(r.Stdout), "part\n") || r.Ended {
				t.Errorf("got %s %q ended=%v, %v", r.Verdict, r.Stdout, r.Ended, err)
			}
			r, err = s.Run(t.Context(), session.Command{Text: "cat", Stdin: strings.NewReader("x")})
			if r.Verdict != session.NotStarted || gateway.Code(err) != "shell.unsupported" {
				t.Errorf("stdin on it = %s, %v, want not_started", r.Verdict, err)
			}
		})
	}
}

// TestJoined: a file that the account's login shell reads, or a forced command, may have
// sent stderr to where stdout goes (exec > >(tee log) 2>&1), or to where nobody reads it.
func TestJoined(t *testing.T) {
	t.Parallel()
	for _, moved := range []string{"exec 2>&1; ", "exec 2>/dev/null; "} {
		t.Run(moved, func(t *testing.T) {
			t.Parallel()
			tr := local.New(local.Config{Env: []string{"HOME=" + t.TempDir()}})
			s := openOn(t, altered{Transport: tr, onPipe: func(command string) string { return moved + command }}, session.Config{})
			for _, command := range []session.Command{
				{Text: "echo out; echo err >&2; sleep 1000", Timeout: 200 * time.Millisecond},
				{Text: "echo out; echo err >&2; (exit 3)"},
				{Text: "echo out; echo err >&2; exit 3"},
			} {
				r, _ := s.Run(t.Context(), command)
				if string(r.Stdout) != "out\nerr\n" || r.StderrBytes > 0 || r.Streams != session.Merged || r.ExitCode < 0 {
					t.Errorf("%s: got %s %d %q %q, %s, want all in stdout, merged", command.Text, r.Verdict, r.ExitCode, r.Stdout, r.Stderr, r.Streams)
				}
			}
		})
	}
}

// TestTerminalTaken: what takes the terminal from the shell's output (exec > >(tee log) 2>&1
// in a .bashrc) would end at a ^C, and the shell with it.
func TestTerminalTaken(t *testing.T) {
	t.Parallel()
	for _, taken := range []string{"exec > >(cat) 2>&1", "exec 2>/dev/null"} {
		t.Run(taken, func(t *testing.T) {
			t.Parallel()
			tr := local.New(local.Config{Env: []string{"HOME=" + t.TempDir()}})
			s := openOn(t, altered{Transport: tr, onTerminal: func(command string) string {
				return "exec bash -c " + session.Quote(taken+"; "+command)
			}}, session.Config{})
			r, err := s.Run(t.Context(), session.Command{Text: "sleep 1000", Timeout: 200 * time.Millisecond})
			if r.Verdict != session.TimedOut || r.Ended {
				t.Errorf("got %s, ended=%v, %v, want timed_out and a session that lives", r.Verdict, r.Ended, err)
			}
			want(t, run(t, s, "echo out; echo err >&2; (exit 3)"), 3, "out\n", "err\n")
		})
	}
}
