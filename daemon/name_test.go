package daemon_test

import (
	"strings"
	"testing"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/gateway"
)

// No session can be taken for another one: the form of an id is no name's.
func TestNameIsNoID(t *testing.T) {
	c := start(t, daemon.Config{})("")
	first := open(t, c, api.Open{})
	for _, name := range []string{first.ID, first.ID + ".1", first.ID + ".x", "s-0123456789", "s-0123456789."} {
		_, err := c.Open(t.Context(), api.Open{Target: localhost, Name: name}, gateway.Caller{})
		if gateway.Code(err) != "usage" || !strings.Contains(err.Error(), "looks like") || gateway.Hint(err) == "" {
			t.Errorf("Open named %s = %v, hint %q", name, err, gateway.Hint(err))
		}
	}
	for _, name := range []string{"s-012345678", "s-01234567890", "S-0123456789", "s-0123456789-x", "xs-0123456789"} {
		if s, err := c.Open(t.Context(), api.Open{Target: localhost, Name: name}, gateway.Caller{}); err != nil || s.Name != name {
			t.Errorf("Open named %s = %+v, %v", name, s, err)
		}
	}
}

// Who goes on in a session of their own that has ended meanwhile does not get into one
// that an agent has called the same, perhaps on another host.
func TestNameStaysMine(t *testing.T) {
	dial := start(t, daemon.Config{})
	all, agent := dial(""), dial("agent")
	mine := open(t, all, api.Open{Name: "work"})
	run(t, all, "work", "echo mine; exit 3")
	eventually(t, "it is over", func() bool {
		s, err := all.Session(t.Context(), mine.ID)
		return err == nil && s.ClosedAt != nil
	})
	theirs := open(t, agent, api.Open{Name: "work"})
	for name, call := range map[string]func() error{
		"Run":     func() error { _, err := all.Run(t.Context(), "work", api.Run{Text: "id"}); return err },
		"Send":    func() error { return all.Send(t.Context(), "work", api.Input{Text: "x", Secret: true}) },
		"Session": func() error { _, err := all.Session(t.Context(), "work"); return err },
		"Output":  func() error { _, err := all.Output(t.Context(), "work", api.Query{}); return err },
		"Close":   func() error { _, err := all.Close(t.Context(), "work"); return err },
	} {
		err := call()
		if hint := gateway.Hint(err); gateway.Code(err) != "usage" || !strings.Contains(hint, mine.ID+" (yours, which is closed)") || !strings.Contains(hint, theirs.ID) {
			t.Errorf("%s = %v, hint %q", name, err, hint)
		}
	}
	if s, err := agent.Session(t.Context(), "work"); err != nil || s.ID != theirs.ID || s.Command != nil {
		t.Errorf("the agent's session is %+v, %v", s, err)
	}
	if o, err := all.Output(t.Context(), mine.ID, api.Query{}); err != nil || len(o.Pieces) != 1 || string(o.Pieces[0].Data) != "mine\n" {
		t.Errorf("Output = %+v, %v", o, err)
	}
	again := open(t, all, api.Open{Name: "work"})
	if s, err := all.Session(t.Context(), "work"); err != nil || s.ID != again.ID {
		t.Errorf("a new one of the name is %+v, %v, want %s", s, err, again.ID)
	}
}
