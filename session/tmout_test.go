package session_test

import (
	"strings"
	"testing"

	"gateway/session"
	"gateway/transport/local"
)

// TestIdleLogout: a machine that logs out who is idle for some seconds (TMOUT) leaves a
// command the time that it takes. bash and ksh93 heed that in any read.
func TestIdleLogout(t *testing.T) {
	t.Parallel()
	for _, sh := range []string{"bash", "bash --posix", "dash", "ksh93", "mksh", "yash", "busybox sh"} {
		t.Run(sh, func(t *testing.T) {
			t.Parallel()
			tr := local.New(local.Config{Env: []string{"HOME=" + t.TempDir(), "TMOUT=1"}})
			by := func(command string) string { return strings.Replace(command, "exec /bin/sh -c", "exec "+sh+" -c", 1) }
			s := openOn(t, altered{Transport: tr, onTerminal: by, onPipe: by}, session.Config{Shell: "dash", NoTerminal: true})
			want(t, run(t, s, "sleep 1.5; echo out; echo err >&2; (exit 3)"), 3, "out\n", "err\n")
			want(t, run(t, s, "echo $TMOUT"), 0, "1\n", "")
		})
	}
}

// TestLoggedOut: why an idle shell has ended is known, where it is such a machine's doing.
func TestLoggedOut(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "mksh"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			s := open(t, session.Config{Shell: shell})
			run(t, s, "TMOUT=1")
			<-s.Done()
			if !s.LoggedOut() {
				t.Error("nobody knows why the shell has ended")
			}
			s = open(t, session.Config{Shell: shell})
			run(t, s, "exit 0")
			<-s.Done()
			if s.LoggedOut() {
				t.Error("a shell that was told to end is said to have waited too long")
			}
		})
	}
}
