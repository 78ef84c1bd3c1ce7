package session_test

import (
	"strings"
	"testing"

	"gateway/session"
)

// TestPosixMode: in its own one, yash knows fewer options of its builtins.
func TestPosixMode(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		run(t, s, "set -o posix 2>/dev/null || :")
		for range 2 {
			want(t, run(t, s, "echo on; (exit 3)"), 3, "on\n", "")
			want(t, runCommand(t, s, session.Command{Text: "cat; (exit 4)", Stdin: strings.NewReader("in\n")}), 4, "in\n", "")
		}
	})
}

// TestEmulatedCsh: its quotes end with their line, and its prompt is not expanded.
func TestEmulatedCsh(t *testing.T) {
	for _, emulate := range []string{"emulate csh", "emulate -R csh", "emulate -R zsh", "setopt csh_junkie_quotes prompt_sp"} {
		t.Run(emulate, func(t *testing.T) {
			t.Parallel()
			s := open(t, session.Config{Shell: "zsh"})
			run(t, s, emulate)
			for _, long := range []string{"", "\n: " + strings.Repeat("x", 5000)} {
				want(t, run(t, s, "cat <<E\necho no\nE"+long), 0, "echo no\n", "")
				want(t, run(t, s, "return 4"+long), 4, "", "")
				want(t, runCommand(t, s, session.Command{Text: "echo on\n(exit 5)", Stdin: strings.NewReader("in\n")}), 5, "on\n", "")
			}
		})
	}
}
