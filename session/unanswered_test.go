package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gateway/session"
)

// TestDeadlineAnswersNothing: a program that handles the interrupt, and asks, gets no line
// that the engine types for the shell.
func TestDeadlineAnswersNothing(t *testing.T) {
	t.Parallel()
	for _, tty := range []bool{true, false} {
		t.Run(map[bool]string{true: "TTY", false: "dev/tty"}[tty], func(t *testing.T) {
			eachShell(t, func(t *testing.T, s *session.Session) {
				run(t, s, "cd /usr")
				answered := filepath.Join(t.TempDir(), "answered")
				const script = `exec </dev/tty; trap "echo no" INT QUIT TERM; printf "Delete? [Y/n] "; while :; do read -r x && break; done; echo "<$x>" >"$F"`
				r, err := s.Run(t.Context(), session.Command{
					Text: "bash -c '" + script + "'", Env: map[string]string{"F": answered}, TTY: tty, Timeout: 500 * time.Millisecond,
					Waiting: func(*session.Prompt) {},
				})
				if b, err := os.ReadFile(answered); err == nil {
					t.Errorf("it was answered: %q", b)
				}
				if r.Verdict != session.TimedOut || r.Ended {
					t.Errorf("got %s, ended %v, %q, %v", r.Verdict, r.Ended, r.Stdout, err)
				}
				want(t, run(t, s, "pwd"), 0, "/usr\n", "")
			})
		})
	}
}

// TestDeadlineOfAShellThatAsks: what the shell itself reads for the command is no answer
// either. Where the trap lets nothing end it, the session ends.
func TestDeadlineOfAShellThatAsks(t *testing.T) {
	t.Parallel()
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			s := open(t, session.Config{Shell: shell})
			answered := filepath.Join(t.TempDir(), "answered")
			r, err := s.Run(t.Context(), session.Command{
				Text: `trap "echo no" INT; printf "Delete? [Y/n] "; while :; do read -r x && break; done; echo "<$x>" >"$F"`, Env: map[string]string{"F": answered},
				TTY: true, Timeout: 500 * time.Millisecond, Waiting: func(*session.Prompt) {},
			})
			if b, err := os.ReadFile(answered); err == nil {
				t.Errorf("it was answered: %q", b)
			}
			if r.Verdict != session.TimedOut {
				t.Errorf("got %s, ended %v, %q, %v", r.Verdict, r.Ended, r.Stdout, err)
			}
		})
	}
}

// TestInterruptAnswersNothing: nor does an interrupt answer what the shell reads for the
// command, whoever sends it.
func TestInterruptAnswersNothing(t *testing.T) {
	t.Parallel()
	interrupts := map[string]func(*session.Session) error{
		"typed": func(s *session.Session) error { _, err := s.Write([]byte("\x03")); return err },
		"sent":  func(s *session.Session) error { return s.Interrupt(session.Int) },
	}
	for name, interrupt := range interrupts {
		t.Run(name, func(t *testing.T) {
			eachShell(t, func(t *testing.T, s *session.Session) {
				if filepath.Base(s.Shell()) == "yash" {
					t.Skip("its read heeds an interrupt when it has its line")
				}
				asked, answers := 0, []string{"one\n", "two\n"}
				r := left(t, s, session.Command{
					TTY:  true,
					Text: `trap "echo trapped" INT; printf "Delete? [Y/n] "; until read -r x; do :; done; echo "got <$x>"; until read -r y; do :; done; echo "then <$y>"; trap - INT`,
				}, func(session.Prompt) {
					asked++
					var err error
					if asked == 1 {
						err = interrupt(s)
					} else if len(answers) > 0 {
						_, err = s.Write([]byte(answers[0]))
						answers = answers[1:]
					}
					if err != nil {
						t.Errorf("asked for the %d. time: %v", asked, err)
					}
				})
				if got := string(r.Stdout); !strings.Contains(got, "got <one>") || !strings.Contains(got, "then <two>") {
					t.Errorf("got %s %q, asked %d times", r.Verdict, got, asked)
				}
			})
		})
	}
}
