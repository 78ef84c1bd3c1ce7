package session_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gateway/internal/sshdtest"
	"gateway/session"
)

func TestTimeoutKeepsTheSessionAndThePartialOutput(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"sleep":             "echo part; sleep 1000",
		"shell loop":        "echo part; LOOP",
		"another prompt":    "PS1='$ '; PS2='> '; echo part; sleep 1000",
		"pipeline":          "echo part; sleep 1000 | (sleep 1000; cat)",
		"reader":            "echo part; read x </dev/tty",
		"ignores interrupt": `echo part; sh -c 'trap "" INT; while :; do sleep 0.1; done'`,
		"ignores all":       `echo part; sh -c 'trap "" INT QUIT TERM HUP; while :; do sleep 0.1; done'`,
		"forks away":        `echo part; (setsid sleep 1000 &) ; sh -c 'sleep 1000 & sleep 1000'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachShell(t, func(t *testing.T, s *session.Session) {
				run(t, s, "cd /usr; V=kept; f() { echo $V; }")
				begun := time.Now()
				nobody := func(*session.Prompt) {} // leaves the reader waiting
				r, err := s.Run(t.Context(), session.Command{Text: strings.Replace(text, "LOOP", endless(s.Shell()), 1), Timeout: 300 * time.Millisecond, Waiting: nobody})
				if r.Verdict != session.TimedOut || !errors.Is(err, context.DeadlineExceeded) || string(r.Stdout) != "part\n" {
					t.Errorf("got %s %q %q, %v, want timed_out with the partial output", r.Verdict, r.Stdout, r.Stderr, err)
				}
				if r.Cwd != "/usr" || r.Ended {
					t.Errorf("cwd = %q, ended = %v, want /usr and a living session", r.Cwd, r.Ended)
				}
				want(t, run(t, s, "pwd; f"), 0, "/usr\nkept\n", "")
				// Two seconds on an idle machine; this one runs everything at once.
				if took := time.Since(begun); sshdtest.Over(t, took, 8*time.Second) {
					t.Errorf("the next result came %v after the start", took)
				}
				eventually(t, "nothing left but the shell", func() bool { return len(processes(s.ID())) == 1 })
			})
		})
	}
}

func TestProgramInPlaceOfTheShellTimesOut(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"echo part; exec sleep 1000", `echo part; exec sh -c 'trap "" INT QUIT TERM; while :; do sleep 0.1; done'`} {
		eachShell(t, func(t *testing.T, s *session.Session) {
			begun := time.Now()
			r, err := s.Run(t.Context(), session.Command{Text: text, Timeout: 200 * time.Millisecond})
			if r.Verdict != session.TimedOut || !errors.Is(err, context.DeadlineExceeded) || string(r.Stdout) != "part\n" || !r.Ended {
				t.Errorf("got %s %q ended=%v, %v, want timed_out and the session's end", r.Verdict, r.Stdout, r.Ended, err)
			}
			if took := time.Since(begun); sshdtest.Over(t, took, 10*time.Second) {
				t.Errorf("took %v", took)
			}
			eventually(t, "nothing left", func() bool { return len(processes(s.ID())) == 0 })
		})
	}
}

func TestFloodTimesOut(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		var r session.Result
		var err error
		// Until both flow, which takes a busy machine its time.
		for timeout := 300 * time.Millisecond; timeout < time.Minute && (r.StdoutBytes == 0 || r.StderrBytes == 0); timeout *= 2 {
			r, err = s.Run(t.Context(), session.Command{Text: "yes & yes >&2", Timeout: timeout, Limit: 1000})
		}
		if r.Verdict != session.TimedOut || err == nil || r.StdoutBytes == 0 || r.StderrBytes == 0 {
			t.Errorf("got %s, %d and %d bytes, %v", r.Verdict, r.StdoutBytes, r.StderrBytes, err)
		}
		// The shell's notice about its job may come on the terminal.
		if r := run(t, s, "echo clean"); string(r.Stdout) != "clean\n" || len(r.Stderr) > 0 {
			t.Errorf("got %.100q %.100q, want a clean stream", r.Stdout, r.Stderr)
		}
	})
}

func TestCancelInterrupts(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		cause := errors.New("the caller's own")
		var ctx context.Context
		var r session.Result
		var err error
		// A program that the machine has no time for is sent a harder signal.
		for tries := 0; tries < 3 && !strings.HasSuffix(string(r.Stdout), "bye\n"); tries++ {
			var give context.CancelCauseFunc
			ctx, give = context.WithCancelCause(t.Context())
			defer give(cause)
			r, err = s.Run(ctx, session.Command{
				Text:   `sh -c 'trap "echo bye; exit 42" INT; echo up; while :; do sleep 0.02; done'`,
				Output: func(session.Stream, []byte) { give(cause) },
			})
			if r.Verdict != session.Interrupted || !errors.Is(err, context.Canceled) {
				break
			}
		}
		if r.Verdict != session.Interrupted || !errors.Is(err, context.Canceled) || string(r.Stdout) != "up\nbye\n" || r.ExitCode != 42 && r.ExitCode != 130 {
			t.Errorf("got %s %d %q %q, %v, want interrupted, its own status and last words", r.Verdict, r.ExitCode, r.Stdout, r.Stderr, err)
		}
		want(t, run(t, s, "echo alive"), 0, "alive\n", "")
		late, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		if r, err := s.Run(late, session.Command{Text: "sleep 1000"}); r.Verdict != session.TimedOut || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Run with a deadline = %s, %v, want timed_out", r.Verdict, err)
		}
		r, err = s.Run(ctx, session.Command{Text: "echo never"})
		if r.Verdict != session.NotStarted || !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
			t.Errorf("Run with an ended context = %s, %v, want not_started", r.Verdict, err)
		}
	})
}

// TestWhatCleansUpBehindAProgramThatIsGone: the shell waits for the program that it has
// started, which dies of the interrupt at once. What that one has started cleans up.
func TestWhatCleansUpBehindAProgramThatIsGone(t *testing.T) {
	t.Parallel()
	const text = `echo | xargs sh -c 'trap "sleep 0.1; : >clean; exit" INT; echo up; while :; do sleep 0.01; done'`
	eachShell(t, func(t *testing.T, s *session.Session) {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		r, err := s.Run(ctx, session.Command{Text: text, Cwd: dir, Timeout: 5 * time.Second, Output: func(session.Stream, []byte) { cancel() }})
		if r.Verdict != session.Interrupted || string(r.Stdout) != "up\n" {
			t.Errorf("got %s %q, %v, want interrupted", r.Verdict, r.Stdout, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "clean")); err != nil {
			t.Error("it could not clean up:", err)
		}
	})
}

// TestInterruptWithOtherKeys: a program, whose text nobody has seen, has taken ^C from the
// terminal.
func TestInterruptWithOtherKeys(t *testing.T) {
	t.Parallel()
	for modes, text := range map[string]string{"intr ^] quit undef": "echo up; sleep 1000; echo on", "raw -echo": "echo up; while :; do sleep 0.02; done"} {
		program := filepath.Join(t.TempDir(), "program")
		must(t, os.WriteFile(program, []byte("#!/bin/sh\nstty "+modes+" </dev/tty\n"), 0o755))
		t.Run(modes, func(t *testing.T) {
			t.Parallel()
			eachShell(t, func(t *testing.T, s *session.Session) {
				run(t, s, "cd /usr; V=kept")
				r, err := s.Run(t.Context(), session.Command{Text: program + "; " + text, Timeout: 10 * time.Second, Output: func(session.Stream, []byte) { go s.Interrupt(session.Int) }})
				if r.Verdict != session.Interrupted || !errors.Is(err, session.ErrInterrupted) || string(r.Stdout) != "up\n" || r.ExitCode != 130 {
					t.Errorf("got %s %d %q, %v, want interrupted with the output", r.Verdict, r.ExitCode, r.Stdout, err)
				}
				want(t, run(t, s, "pwd; echo $V"), 0, "/usr\nkept\n", "")
			})
		})
	}
}
