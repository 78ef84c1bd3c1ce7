package integration

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gateway/internal/sshdtest"
)

// Nobody waits for who writes a key into a FIFO.
func TestIdentityThatIsAFIFO(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	d := &deploy{t: t, dir: t.TempDir()}
	key := filepath.Join(d.dir, "key")
	if err := syscall.Mkfifo(key, 0o600); err != nil {
		t.Fatal(err)
	}
	d.file("hosts.yaml", fmt.Sprintf("hosts:\n  web1: {addr: 127.0.0.1, port: %d, user: %s, identity: %q, agent: false, host_key_policy: accept-new}\n", s.Port, s.User, key))
	status, _, stderr := d.run("exec", "web1", "--", "true")
	if want := "key " + key + ": a FIFO, and no regular file"; status != 125 || !strings.Contains(stderr, "auth.key_unreadable") || !strings.Contains(stderr, want) {
		t.Errorf("status %d, %s, want 125 and %s", status, stderr, want)
	}
}
