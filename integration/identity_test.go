package integration

import (
	"fmt"
	"io"
	"net/http"
	"os"
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

// What is the same for many hosts is said once.
func TestWarningOfManyHosts(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, mustRead(t, s.KeyFile), 0o644); err != nil {
		t.Fatal(err)
	}
	newer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUpgradeRequired)
		io.WriteString(w, `{"error": {"code": "daemon.version", "message": "daemon: it speaks protocol 99"}}`)
	})
	u := newUser(t, fmt.Sprintf("hosts:\n  \"web[1-3]\": {addr: 127.0.0.1, port: %d, user: %s, identity: %q, known_hosts: %q, agent: false}\n", s.Port, s.User, key, s.KnownHosts))
	u.env = append(u.env, "GATEWAY_SOCKET="+serveSocket(t, newer))
	o := u.gateway(t, "exec", "web[1-3]", "--", "true")
	for _, warning := range []string{"can be read by others", "not using its connections"} {
		if n := strings.Count(o.stderr, warning); o.status != 0 || n != 1 {
			t.Errorf("status %d, %q comes %d times, want once: %s", o.status, warning, n, o.stderr)
		}
	}
}
