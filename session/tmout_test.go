package session_test

import (
	"context"
	"strings"
	"testing"

	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// othersSh is a machine where sh is another shell.
type othersSh struct {
	transport.Transport
	sh string
}

func (o othersSh) Terminal(ctx context.Context, command string, options transport.TerminalOptions) (transport.Terminal, error) {
	return o.Transport.Terminal(ctx, o.by(command), options)
}

func (o othersSh) Pipe(ctx context.Context, command string) (*transport.Pipe, error) {
	return o.Transport.Pipe(ctx, o.by(command))
}

func (o othersSh) by(command string) string {
	return strings.Replace(command, "exec /bin/sh -c", "exec "+o.sh+" -c", 1)
}

// TestIdleLogout: a machine that logs out who is idle for some seconds (TMOUT) leaves a
// command the time that it takes. bash and ksh93 heed that in any read.
func TestIdleLogout(t *testing.T) {
	t.Parallel()
	for _, sh := range []string{"bash", "bash --posix", "dash", "ksh93", "mksh", "yash", "busybox sh"} {
		t.Run(sh, func(t *testing.T) {
			t.Parallel()
			tr := local.New(local.Config{Env: []string{"HOME=" + t.TempDir(), "TMOUT=1"}})
			defer tr.Close()
			s, err := session.Open(t.Context(), othersSh{tr, sh}, session.Config{Shell: "dash", NoTerminal: true})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
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
