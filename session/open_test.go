package session_test

import (
	"context"
	"errors"
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
