package ssh_test

import (
	"errors"
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
	f()
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before))
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
	var err error
	withoutDescriptors(t, func() {
		_, err = ssh.Dial(t.Context(), ssh.Config{Name: "web1", Addr: "127.0.0.1", Port: 1, User: "me", HostKeys: &ssh.HostKeys{}})
	})
	wantLimit(t, err)
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
