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
