package ssh_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	gossh "golang.org/x/crypto/ssh"

	"gateway/internal/sshdtest"
	"gateway/transport"
	"gateway/transport/ssh"
)

// withoutDescriptors calls f while this process can open nothing.
func withoutDescriptors(t *testing.T, f func()) {
	t.Helper()
	restore := takeDescriptors(t)
	f()
	restore()
}

// takeDescriptors leaves this process nothing to open until it is given back.
func takeDescriptors(t *testing.T) (restore func()) {
	t.Helper()
	var before syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	probe, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	limit := before
	limit.Cur = uint64(probe.Fd())
	probe.Close()
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	return func() { must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before)) }
}

// wantLimit wants that to be told, and nothing else to be blamed.
func wantLimit(t *testing.T, err error) {
	t.Helper()
	if refused := new(transport.Error); !errors.As(err, &refused) || refused.Code != "session.limit" || refused.Hint == "" {
		t.Errorf("error = %v, want session.limit", err)
	}
}

// TestNoDescriptorsLeft: where this process can open no connection, that is told, and not
// the network.
func TestNoDescriptorsLeft(t *testing.T) {
	for _, proxy := range []string{"", "cat"} {
		var err error
		withoutDescriptors(t, func() {
			_, err = ssh.Dial(t.Context(), ssh.Config{Name: "web1", Addr: "127.0.0.1", Port: 1, ProxyCommand: proxy, User: "me", HostKeys: &ssh.HostKeys{}})
		})
		wantLimit(t, err)
	}
}

// A list of host keys that can't be opened for that reason is no empty one, in which the
// host would be unknown, and any key be taken for a new one.
func TestNoDescriptorsLeftForHostKeys(t *testing.T) {
	key := sshdtest.NewKey(t, "ed25519").Public()
	dir := t.TempDir()
	known, revoked := filepath.Join(dir, "known_hosts"), filepath.Join(dir, "revoked")
	line := "web1 " + string(gossh.MarshalAuthorizedKey(key))
	must(t, errors.Join(os.WriteFile(known, []byte(line), 0o600), os.WriteFile(revoked, nil, 0o600)))
	for name, keys := range map[string]*ssh.HostKeys{
		"known":   {Name: "web1", Files: []string{known}},
		"revoked": {Name: "web1", Pins: []string{gossh.FingerprintSHA256(key)}, Revoked: revoked},
	} {
		check := keys.Callback(t.Context())
		var err error
		withoutDescriptors(t, func() { err = check("", nil, key) })
		t.Log(name, err)
		wantLimit(t, err)
		if err := check("", nil, key); err != nil {
			t.Errorf("%s: %v, once there are descriptors again", name, err)
		}
	}
}

// A key that can't be looked at for that reason is neither missing nor refused.
func TestNoDescriptorsLeftForKeys(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	other := sshdtest.NewKey(t, "ed25519")
	pem, err := os.ReadFile(other.File)
	if err != nil {
		t.Fatal(err)
	}
	agent, err := net.Listen("unix", filepath.Join(t.TempDir(), "agent"))
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	for name, edit := range map[string]func(*ssh.Config){
		"identity":         func(*ssh.Config) {},
		"default identity": func(c *ssh.Config) { c.Identities[0].Optional = true },
		"agent":            func(c *ssh.Config) { c.Identities, c.Agent = nil, agent.Addr().String() },
		"certificate": func(c *ssh.Config) {
			c.Identities, c.Certificates = []ssh.Identity{{PEM: pem}}, []string{s.KeyFile}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := config(s)
			edit(&c)
			restore := func() {}
			c.Trace = func(step ssh.Step) {
				if step.Layer == "hostkey" { // keys come next
					restore = takeDescriptors(t)
				}
			}
			conn, err := ssh.Dial(t.Context(), c)
			restore()
			if err == nil {
				conn.Close()
			}
			t.Log(err)
			wantLimit(t, err)
		})
	}
}
