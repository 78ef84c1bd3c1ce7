package gateway_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	gossh "golang.org/x/crypto/ssh"

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

// Each layer is told with the name of the machine that it is one of, and so is
// the one that fails.
func TestCheckThroughJump(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	const settings = "addr: %s, port: %d, user: %s, identity: %s, agent: false, host_key: %q"
	fields := fmt.Sprintf(settings, server.Host, server.Port, server.User, server.KeyFile, gossh.FingerprintSHA256(server.HostKey))
	inventory := fmt.Sprintf(`
hosts:
  inner: {%[1]s, jump: door}
  door: {%[1]s}
  lost: {%[1]s, jump: dead}
  far: {%[1]s, jump: lost}
  dead: {addr: 127.0.0.1, port: 1, user: me, identity: []}
`, fields)
	for _, test := range []struct {
		host  string
		steps []string // a layer, and of which jump
		said  string
	}{
		{"inner", []string{
			"tcp door", "hostkey door", "banner door", "kex door", "auth door", "auth door",
			"tcp ", "hostkey ", "banner ", "kex ", "auth ", "auth ", "session ", "shell ", "sftp ",
		}, ""},
		{"lost", []string{"tcp dead"}, "ssh: jump of lost: ssh: dead (127.0.0.1:1): connection refused"},
		{"far", []string{"tcp dead"}, "ssh: jump of far: ssh: jump of lost: ssh: dead (127.0.0.1:1): connection refused"},
	} {
		t.Run(test.host, func(t *testing.T) {
			var steps []string
			said, code := "", ""
			err := with(t, inventory, nil).Check(t.Context(), test.host, func(s gateway.Step) { steps = append(steps, s.Layer+" "+s.Jump) })
			if err != nil {
				said, code = err.Error(), "tcp.refused"
			}
			if !slices.Equal(steps, test.steps) || said != test.said || gateway.Code(err) != code {
				t.Errorf("steps %q, %s: %v, want %q, %q", steps, gateway.Code(err), err, test.steps, test.said)
			}
		})
	}
}
