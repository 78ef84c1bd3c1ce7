package session_test

import (
	"testing"

	"gateway/session"
)

// TestNoModesUnderErrexit: a session without a terminal has no modes to set, and a shell
// that leaves at what fails does not leave for that.
func TestNoModesUnderErrexit(t *testing.T) {
	for _, shell := range shells {
		for _, plain := range []bool{false, true} {
			t.Run(shell, func(t *testing.T) {
				t.Parallel()
				s := open(t, session.Config{Shell: shell, NoTerminal: plain})
				run(t, s, "set -e")
				want(t, run(t, s, "stty -a >/dev/null 2>&1 || :; echo modes"), 0, "modes\n", "")
				want(t, run(t, s, "echo on"), 0, "on\n", "")
			})
		}
	}
}
