package gateway_test

import (
	"context"
	"testing"

	"gateway/gateway"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// failing opens nothing.
type failing struct {
	transport.Transport
	err error
}

func (f failing) Terminal(context.Context, string, transport.TerminalOptions) (transport.Terminal, error) {
	return nil, f.err
}

func (f failing) Pipe(context.Context, string) (*transport.Pipe, error) { return nil, f.err }

// TestWarm: a warm connection is used where there is one, and where it fails
// exec does without.
func TestWarm(t *testing.T) {
	refused := func(code string) error { return &transport.Error{Code: code, Message: "refused"} }
	for _, test := range []struct {
		name string
		warm transport.Transport
		code string
	}{
		{"there is one", local.New(local.Config{}), ""},
		{"there is none", nil, "tcp.refused"},
		{"it has died", failing{local.New(local.Config{}), refused("ssh.closed")}, "tcp.refused"},
		{"its owner dies", failing{local.New(local.Config{}), refused("link.lost")}, "tcp.refused"},
		{"its owner is stuck", failing{local.New(local.Config{}), refused("daemon.unreachable")}, "tcp.refused"},
		{"the machine refuses", failing{local.New(local.Config{}), refused("session.forced_command")}, "session.forced_command"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var asked []gateway.Target
			g := with(t, "hosts: {web1: {addr: 127.0.0.1, port: 1, known_hosts: []}}", func(c *gateway.Config) {
				c.Warm = func(_ context.Context, target gateway.Target) (transport.Transport, bool) {
					asked = append(asked, target)
					return test.warm, test.warm != nil
				}
			})
			r := g.Exec(t.Context(), "web1", gateway.Command{Text: "echo hi"})
			if gateway.Code(r.Err) != test.code {
				t.Errorf("Exec = %v, want %q", r.Err, test.code)
			}
			if test.code == "" && (string(r.Stdout) != "hi\n" || r.Verdict != session.Exited) {
				t.Errorf("Exec = %s %q", r.Verdict, r.Stdout)
			}
			if len(asked) != 1 || asked[0].Port != 1 {
				t.Errorf("asked for %v, want web1 once", asked)
			}
			if test.warm != nil {
				if _, err := test.warm.Pipe(t.Context(), "true"); err == nil {
					t.Error("the warm transport is not closed")
				}
			}
		})
	}
}
