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
