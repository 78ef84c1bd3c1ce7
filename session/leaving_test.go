package session_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"gateway/session"
	"gateway/transport/local"
)

// TestShellEndsWhileIdle: a subshell that the shell has left behind holds its terminal, or
// the pipes in its place. The session ends with its shell all the same, also where no
// command runs.
func TestShellEndsWhileIdle(t *testing.T) {
	for _, plain := range []bool{false, true} {
		for _, shell := range shells {
			t.Run(shell+map[bool]string{true: " without a terminal"}[plain], func(t *testing.T) {
				t.Parallel()
				s := openOn(t, local.New(local.Config{Env: []string{"HOME=" + t.TempDir()}}), session.Config{Shell: shell, NoTerminal: plain})
				r := run(t, s, `{ trap "" HUP; while :; do sleep 0.1; done; } >/dev/null 2>&1 & echo $$ $!`)
				var pid, job int
				if _, err := fmt.Sscan(string(r.Stdout), &pid, &job); err != nil {
					t.Fatal(err)
				}
				defer syscall.Kill(job, syscall.SIGKILL)
				must(t, syscall.Kill(pid, syscall.SIGKILL))
				select {
				case <-s.Done():
				case <-time.After(5 * time.Second):
					t.Fatal("its shell is gone, and the session goes on")
				}
				if exit, err := s.Exit(); exit.Signal != "KILL" || err != nil {
					t.Errorf("Exit = %+v, %v", exit, err)
				}
				if err := syscall.Kill(job, 0); err != nil {
					t.Errorf("the job: %v", err)
				}
				if _, err := s.Run(t.Context(), session.Command{Text: "true"}); !errors.Is(err, session.ErrClosed) {
					t.Errorf("Run = %v, want %v", err, session.ErrClosed)
				}
			})
		}
	}
}
