package session_test

import (
	"errors"
	"strconv"
	"strings"
	"syscall"
	"testing"

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
const keeperOf = `e=$(readlink /proc/self/fd/2); for p in /proc/[0-9]*; do
	[ "$(readlink $p/fd/4 2>&1)" = "$e" ] && [ "$(readlink $p/fd/6 2>&1)" = "$e" ] && echo ${p#/proc/} && break
done`

func TestKeeperIsKilled(t *testing.T) {
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
		unknown := r.Verdict == session.Unknown && errors.Is(err, session.ErrLost)
		known := r.Verdict == session.Exited && err == nil && string(r.Stdout) == "written\n" // the frame held its streams
		if !unknown && !known {
			t.Errorf("got %s %q, %v, want unknown, or exited", r.Verdict, r.Stdout, err)
		}
		want(t, run(t, s, "pwd; echo $V"), 0, "/usr\nkept\n", "")
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
