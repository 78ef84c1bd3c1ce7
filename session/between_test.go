package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gateway/gateway"
	"gateway/session"
)

// TestScriptFlood: what comes between two commands of a script is bounded, and what was
// too much is said.
func TestScriptFlood(t *testing.T) {
	t.Parallel()
	s := open(t, session.Config{Shell: "bash"})
	script := new(session.Script)
	leave(t, s, script, "yes | head -c 3000000")
	r, err := s.Run(t.Context(), session.Command{Text: "wait; echo end", Script: script, Limit: 16 << 20})
	if err != nil || !r.Cut || !r.Truncated || len(r.Stdout) < 1<<20 || !bytes.HasPrefix(r.Stdout, []byte("y\ny\n")) {
		t.Errorf("got %s, %d bytes, cut %v, %v; want the first MiB of it, and word that there was more", r.Verdict, len(r.Stdout), r.Cut, err)
	}
	if r := run(t, s, "echo mine"); string(r.Stdout) != "mine\n" {
		t.Errorf("behind it: %.40q", r.Stdout)
	}
}

// TestScriptThatNobodyReads: a caller who does not take what came between two commands
// holds up the second one no longer than its own end.
func TestScriptThatNobodyReads(t *testing.T) {
	t.Parallel()
	const tries = 5
	for try := range tries {
		s := open(t, session.Config{Shell: "bash"})
		script := new(session.Script)
		leave(t, s, script, "echo job")
		ran := filepath.Join(t.TempDir(), "ran")
		release := make(chan struct{})
		defer close(release)
		r, err := s.Run(t.Context(), session.Command{
			Text: ": >" + ran, Script: script, Timeout: 100 * time.Millisecond,
			Output: func(session.Stream, []byte) { <-release },
		})
		_, there := os.Stat(ran)
		if there == nil && try < tries-1 { // what the job has said was still on its way, and came to this command
			continue
		}
		if r.Verdict != session.NotStarted || !errors.Is(err, context.DeadlineExceeded) || gateway.Code(err) != "cmd.timeout" || there == nil {
			t.Errorf("got %s, %v; want not_started, as nobody takes the output", r.Verdict, err)
		}
		if r := run(t, s, "echo mine; test -e "+ran); string(r.Stdout) != "mine\n" || r.ExitCode != 1 {
			t.Errorf("behind it: %q, status %d", r.Stdout, r.ExitCode)
		}
		return
	}
}

// leave has a script leave a job that speaks once its command is over, and waits until
// it has.
func leave(t *testing.T, s *session.Session, script *session.Script, job string) {
	t.Helper()
	dir := t.TempDir()
	if _, err := s.Run(t.Context(), session.Command{Text: fmt.Sprintf("(until [ -e %[1]s/go ]; do sleep 0.02; done; %[2]s; : >%[1]s/said) &", dir, job), Script: script}); err != nil {
		t.Fatal(err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	for end := time.Now().Add(20 * time.Second); ; <-time.After(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, "said")); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the job has not spoken")
		}
	}
}
