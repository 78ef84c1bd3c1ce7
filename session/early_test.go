package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gateway/session"
)

// TestInterruptBeforeAnythingRan interrupts a command in the moment when it has
// been typed: the ^C throws away what the shell has not read yet, and may meet
// it at its prompt, while it reads the line, or while it starts the program.
func TestInterruptBeforeAnythingRan(t *testing.T) {
	for _, test := range []struct {
		name  string
		level session.Level
		text  string
		plain bool
		after time.Duration
	}{
		{"int", session.Int, "/bin/sleep 30", false, 0},
		{"int while it is read", session.Int, strings.Repeat("# "+strings.Repeat("x", 400)+"\n", 5) + "/bin/sleep 30", false, time.Millisecond},
		{"term", session.Term, "/bin/sleep 30", false, 0},
		{"kill", session.Kill, "/bin/sleep 30", false, 0},
		{"a loop", session.Int, "LOOP", false, 0},
		{"int without a terminal", session.Int, "/bin/sleep 30", true, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, shell := range shells {
				t.Run(shell, func(t *testing.T) {
					t.Parallel()
					s := open(t, session.Config{Shell: shell, NoTerminal: test.plain})
					for i := range 5 {
						var refused error
						begun := time.Now()
						ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
						r, err := s.Run(ctx, session.Command{Text: strings.Replace(test.text, "LOOP", endless(shell), 1), Started: func() {
							time.Sleep(test.after)
							refused = s.Interrupt(test.level)
						}})
						cancel()
						if took := time.Since(begun); r.Verdict != session.Interrupted || !errors.Is(err, session.ErrInterrupted) || took > 5*time.Second || refused != nil || r.Ended {
							t.Fatalf("round %d: %s after %v, ended %v: %v; Interrupt = %v", i, r.Verdict, took, r.Ended, err, refused)
						}
					}
					want(t, run(t, s, "echo fine"), 0, "fine\n", "")
				})
			}
		})
	}
}
