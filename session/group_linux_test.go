package session_test

import (
	"testing"
	"time"

	"gateway/session"
	"gateway/transport/local"
)

// TestLeaderOfAGroupAlone: a session of a server's own is that of all its clients. What a
// command has started could not be told from what theirs have.
func TestLeaderOfAGroupAlone(t *testing.T) {
	tr := local.New(local.Config{Shell: "/bin/bash"})
	t.Cleanup(func() { tr.Close() })
	// As servers in Go do with Setpgid, it makes each program the leader of a group and of no session.
	server := altered{Transport: tr, onPipe: func(command string) string { return "set -m; ( " + command + " ); exit" }}
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			s, err := session.Open(t.Context(), server, session.Config{Shell: shell, NoTerminal: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			if r := run(t, s, "set -- $(cat /proc/$$/stat); [ $6 = $$ ] && echo its own"); string(r.Stdout) != "its own\n" {
				t.Errorf("the shell's session: %q %q", r.Stdout, r.Stderr)
			}
			r, err := s.Run(t.Context(), session.Command{Text: "echo part; sleep 1000", Timeout: 100 * time.Millisecond})
			if r.Verdict != session.TimedOut || string(r.Stdout) != "part\n" {
				t.Errorf("%s %q, %v", r.Verdict, r.Stdout, err)
			}
			if r, err := s.Run(t.Context(), session.Command{Text: "exit 7"}); r.ExitCode != 7 {
				t.Errorf("behind it: %s with %d, %v", r.Verdict, r.ExitCode, err)
			}
		})
	}
}
