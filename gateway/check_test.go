package gateway_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"gateway/gateway"
	"gateway/internal/sshdtest"
)

// Whatever the hosts' policies are, a check records no host key and asks about
// none, on the way neither.
func TestCheckRecordsNoHostKey(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	for _, policy := range []string{"accept-new", "ask"} {
		for way, inventory := range map[string]string{
			"direct":  "hosts: {web1: {%s}}",
			"bastion": "hosts: {web1: {%[1]s, jump: door}, door: {%[1]s}}",
		} {
			t.Run(policy+" "+way, func(t *testing.T) {
				known := filepath.Join(t.TempDir(), "known_hosts")
				fields := fmt.Sprintf("addr: %s, port: %d, user: %s, identity: %s, agent: false, known_hosts: %s, host_key_policy: %s",
					server.Host, server.Port, server.User, server.KeyFile, known, policy)
				g := with(t, fmt.Sprintf(inventory, fields), func(c *gateway.Config) {
					c.Ask = func(_ context.Context, q gateway.Question) (string, error) {
						t.Errorf("asked %q", q.Prompt)
						return "yes", nil
					}
				})
				var last gateway.Step
				err := g.Check(t.Context(), "web1", func(s gateway.Step) { last = s })
				if gateway.Code(err) != "hostkey.unknown" || last.Layer != "hostkey" {
					t.Errorf("Check = %v at %s, want hostkey.unknown at hostkey", err, last.Layer)
				}
				if _, err := os.Stat(known); !os.IsNotExist(err) {
					t.Errorf("%s is there: %v", known, err)
				}
			})
		}
	}
}
