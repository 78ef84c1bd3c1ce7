package integration

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gateway/session"
	"gateway/transport"
)

// oneSided is a machine whose side channel is refused once the shell is there.
type oneSided struct {
	transport.Transport
	up func()
}

var errRefused = errors.New("refused")

func (o oneSided) Pipe(context.Context, string) (*transport.Pipe, error) {
	o.up()
	return nil, errRefused
}

// TestFailedOpenLeavesNothing: the shell is there, the session does not come
// about, and the connection lives on.
func TestFailedOpenLeavesNothing(t *testing.T) {
	for _, f := range farMachines(t) {
		t.Run(f.name, func(t *testing.T) {
			tr := dial(t, f.server, f.link.Port())
			neighbour := open(t, tr)
			_, id, _ := strings.Cut(tag(t), "=")
			mark := "GATEWAY_SESSION=" + id
			up := func() { eventually(t, "the shell is there", func() bool { return tagged(mark) > 0 }) }
			if _, err := session.Open(t.Context(), oneSided{tr, up}, session.Config{ID: id}); !errors.Is(err, errRefused) {
				t.Errorf("Open = %v, want the refusal", err)
			}
			gone(t, mark)
			if r, err := neighbour.Run(t.Context(), session.Command{Text: "echo on"}); err != nil || string(r.Stdout) != "on\n" {
				t.Errorf("the neighbour: %q, %v", r.Stdout, err)
			}
		})
	}
}
