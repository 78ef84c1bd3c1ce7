package session_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gateway/internal/sshdtest"
	"gateway/session"
)

// The second command of a session runs from the keeper's frame file. These
// tests take away what it stands on.

func TestTextThatTakesEveryVariableAway(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		run(t, s, "true")
		want(t, run(t, s, "unset _gwn _gw; cd /usr; echo on; (exit 4)"), 4, "on\n", "")
		want(t, run(t, s, "pwd"), 0, "/usr\n", "")
	})
}

func TestReturnLeavesTheTextAndNotTheShell(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		run(t, s, "true")
		r := run(t, s, "cd /usr; echo on; return 5; echo never")
		want(t, r, 5, "on\n", "")
		if r.Cwd != "/usr" {
			t.Errorf("cwd = %q, want /usr", r.Cwd)
		}
		want(t, run(t, s, "pwd"), 0, "/usr\n", "")
	})
}

func TestDirectoryOfTheSessionIsEmptied(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		run(t, s, "true")
		pid := strings.TrimSpace(string(run(t, s, keeperOf).Stdout))
		want(t, run(t, s, `rm -rf "$(dirname "$(readlink /proc/`+pid+`/fd/8)")"`), 0, "", "")
		want(t, run(t, s, "echo on"), 0, "on\n", "")
		r, err := s.Run(t.Context(), session.Command{Text: "echo $A", Env: map[string]string{"A": "b"}})
		if err != nil || string(r.Stdout) != "b\n" {
			t.Errorf("Run = %q, %v, want b", r.Stdout, err)
		}
	})
}

// keeperOf is a command that finds the process on the other side of its
// stderr.
const keeperOf = `e=$(readlink /proc/self/fd/2); for p in $(ls -l /proc/[0-9]*/fd/4 2>/dev/null | grep -F -e "-> $e" | grep -o '/proc/[0-9]*'); do
	[ "$(readlink $p/fd/6 2>&1)" = "$e" ] && d=$(readlink $p/fd/8) && cat "${d%/r}/p" && break
done`

func TestKeeperIsKilled(t *testing.T) {
	t.Parallel()
	t.Run("stored", func(t *testing.T) { keeperIsKilled(t, nil) })
	t.Run("typed", func(t *testing.T) { keeperIsKilled(t, map[string]string{"A": "b"}) })
}

// keeperIsKilled does it in a command with this environment, which is what makes
// it a typed frame.
func keeperIsKilled(t *testing.T, env map[string]string) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		keeper := func() string {
			return strings.TrimSpace(string(run(t, s, keeperOf).Stdout))
		}
		run(t, s, "cd /usr; V=kept")
		pid := keeper()
		r, err := s.Run(t.Context(), session.Command{Text: "kill -9 " + pid + "; while kill -0 " + pid + " 2>/dev/null; do :; done; echo written", Env: env})
		unknown := r.Verdict == session.Unknown && errors.Is(err, session.ErrLost) && r.Streams == session.Lost
		known := r.Verdict == session.Exited && err == nil && string(r.Stdout) == "written\n" // the frame held its streams
		if !unknown && !known {
			t.Errorf("got %s %q, streams %s, %v, want unknown and lost, or exited", r.Verdict, r.Stdout, r.Streams, err)
		}
		// The next command may be on its way before the keeper's end is known. Nobody
		// knows then whether it ran; the one behind it has a new keeper.
		after := session.Command{Text: "pwd; echo $V"}
		if r, err = s.Run(t.Context(), after); known && r.Verdict == session.Unknown && errors.Is(err, session.ErrLost) {
			r, err = s.Run(t.Context(), after)
		}
		if err != nil {
			t.Fatalf("the session is lost: %v", err)
		}
		want(t, r, 0, "/usr\nkept\n", "")
		if pid, err := strconv.Atoi(keeper()); err != nil {
			t.Fatal(err)
		} else if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the next command finds a new keeper", func() bool {
			r, err := s.Run(t.Context(), session.Command{Text: "pwd"})
			return err == nil && string(r.Stdout) == "/usr\n"
		})
	})
}

// A job that no text shows may hold what the frame has open. It holds up neither
// the next command nor the session's end.
func TestJobOfAFunction(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		gate := filepath.Join(t.TempDir(), "gate")
		must(t, os.WriteFile(gate, nil, 0o600))
		run(t, s, "f() { (while [ -e "+gate+" ]; do sleep 0.1; done) >/dev/null 2>&1 & }")
		for range 4 {
			if r := run(t, s, "f; echo on"); string(r.Stdout) != "on\n" || r.ExitCode != 0 {
				t.Errorf("a command with a job: %d %q %q", r.ExitCode, r.Stdout, r.Stderr)
			}
		}
		must(t, os.Remove(gate))
		if r := run(t, s, "echo on"); string(r.Stdout) != "on\n" {
			t.Errorf("after the jobs: %q %q", r.Stdout, r.Stderr)
		}
	})
}

// A frame leaves its line before it has set the prompt anew: the next one does.
func TestPromptOfATextThatIsLeft(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		run(t, s, "true")
		for range 2 {
			r, err := s.Run(t.Context(), session.Command{Text: "PS1='$ '; sleep 100", Timeout: 300 * time.Millisecond})
			if r.Verdict != session.TimedOut || r.Ended {
				t.Fatalf("got %s, ended %v, %v, want timed_out", r.Verdict, r.Ended, err)
			}
		}
		want(t, run(t, s, "echo on"), 0, "on\n", "")
		want(t, run(t, s, "echo on"), 0, "on\n", "")
	})
}

// A shell with few descriptors runs what it can as it did before.
func TestFewDescriptors(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		if strings.HasSuffix(s.Shell(), "yash") {
			return // it keeps its own from 100 on
		}
		run(t, s, "true")
		want(t, run(t, s, "n=$(ulimit -S -n); ulimit -S -n 20"), 0, "", "")
		want(t, run(t, s, "echo a; (exit 3)"), 3, "a\n", "")
		want(t, run(t, s, "ulimit -S -n $n"), 0, "", "")
	})
}

// A shell that can no more redirect anything says what it still can, or ends; it
// never answers wrongly, and nobody waits for it.
func TestTooFewDescriptors(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		begun := time.Now()
		r, _ := s.Run(t.Context(), session.Command{Text: "ulimit -n 10; echo set", Timeout: 5 * time.Second})
		if string(r.Stdout) != "set\n" || r.Verdict != session.Exited && r.Verdict != session.Unknown {
			t.Errorf("got %s %q, want what it has said", r.Verdict, r.Stdout)
		}
		for range 3 {
			r, err := s.Run(t.Context(), session.Command{Text: "echo a; (exit 3)", Timeout: 5 * time.Second})
			if r.Verdict == session.Exited && (err != nil || r.ExitCode != 3 || string(r.Stdout) != "a\n") {
				t.Errorf("afterwards: %d %q %q, %v, want 3, a", r.ExitCode, r.Stdout, r.Stderr, err)
			}
			if r.Verdict == session.Exited && !r.Ended {
				break
			}
		}
		if took := time.Since(begun); sshdtest.Over(t, took, 15*time.Second) {
			t.Errorf("it took %v", took)
		}
	})
}
