package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gateway/gateway"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// mute is a machine on which nothing that is started says a word.
type mute struct{ transport.Transport }

const saysNothing = "exec sleep 60"

func (m mute) Terminal(ctx context.Context, _ string, options transport.TerminalOptions) (transport.Terminal, error) {
	return m.Transport.Terminal(ctx, saysNothing, options)
}

func (m mute) Pipe(ctx context.Context, _ string) (*transport.Pipe, error) {
	return m.Transport.Pipe(ctx, saysNothing)
}

// A caller that gives up is not told of a machine that does not answer.
func TestOpeningEnds(t *testing.T) {
	tr := local.New(local.Config{})
	defer tr.Close()
	gaveUp := errors.New("gave up")
	for name, test := range map[string]struct {
		after func(context.Context) (context.Context, context.CancelFunc)
		code  string
	}{
		"by the caller": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			timer := time.AfterFunc(200*time.Millisecond, func() { cancel(gaveUp) })
			return ctx, func() { timer.Stop(); cancel(nil) }
		}, "internal"},
		"by its time": {func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} }, "shell.no_sync"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := test.after(t.Context())
			defer cancel()
			_, err := session.Open(ctx, mute{tr}, session.Config{Shell: "bash", OpenTimeout: time.Second})
			if gateway.Code(err) != test.code || errors.Is(err, gaveUp) != (test.code == "internal") {
				t.Errorf("Open = %s, %v, want %s", gateway.Code(err), err, test.code)
			}
		})
	}
}

// expired is a machine that wants a new password first, as sshd does where it has expired.
type expired struct{ transport.Transport }

func (e expired) Terminal(ctx context.Context, _ string, options transport.TerminalOptions) (transport.Terminal, error) {
	return e.Transport.Terminal(ctx, "echo Current password:; exec sleep 60", options)
}

func (e expired) Pipe(ctx context.Context, _ string) (*transport.Pipe, error) {
	return e.Transport.Pipe(ctx, "echo no terminal >&2; exit 1")
}

// A shell that waits for something else is not waited for where there is no side channel.
func TestOpeningWithoutASideChannel(t *testing.T) {
	tr := local.New(local.Config{})
	defer tr.Close()
	_, err := session.Open(t.Context(), expired{tr}, session.Config{Shell: "bash", OpenTimeout: time.Minute})
	if gateway.Code(err) != "shell.no_sync" || errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Open = %s, %v", gateway.Code(err), err)
	}
	for _, said := range []string{"the side channel ended at once", "Current password:", "no terminal"} {
		if !strings.Contains(err.Error(), said) {
			t.Errorf("%v: no word of %q", err, said)
		}
	}
}

// TestPromptIsTheShellsAlone: programs do not have the engine's prompt in their environment,
// but in the shells that can't take a variable out of it.
func TestPromptIsTheShellsAlone(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		for range 2 { // the second frame is a stored one
			out := string(run(t, s, "/usr/bin/env | grep '^PS[0-9]=' || :").Stdout)
			kept := strings.HasSuffix(s.Shell(), "dash") || strings.Contains(s.Shell(), "busybox")
			if out != "" && !kept {
				t.Errorf("in the environment: %q", out)
			}
		}
	})
}
