package gateway_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gateway/gateway"
	"gateway/internal/sshdtest"
)

// The keys of a host are seen without those that enter it, and recorded as often
// as they are trusted.
func TestTrust(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{HostKeys: []string{"ed25519", "ecdsa"}})
	known, ran := filepath.Join(t.TempDir(), "known_hosts"), filepath.Join(t.TempDir(), "ran")
	g := with(t, fmt.Sprintf("hosts: {web1: {addr: %s, port: %d, known_hosts: %s, identity: [env:GWTEST_NOT_SET, \"cmd:touch %s\"]}}", server.Host, server.Port, known, ran), nil)
	for _, is := range []struct {
		known bool
		code  string
	}{{false, "hostkey.unknown"}, {true, ""}} {
		keys, err := g.HostKeys(t.Context(), "web1")
		if err != nil || len(keys) != 2 {
			t.Fatalf("HostKeys = %v, %v, want two", keys, err)
		}
		for _, key := range keys {
			if key.Known() != is.known || key.Code != is.code || key.Conflict != "" {
				t.Errorf("key = %+v, want known %v and code %q", key, is.known, is.code)
			}
			if file, err := g.Trust(key); file != known || err != nil {
				t.Errorf("Trust = %s, %v, want %s", file, err, known)
			}
		}
	}
	text, err := os.ReadFile(known)
	if err != nil || strings.Count(string(text), "\n") != 2 {
		t.Errorf("%s = %q, %v, want two lines", known, text, err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the command of an identity was run")
	}
}

func TestTrustWithoutFile(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	g := with(t, fmt.Sprintf("hosts: {web1: {addr: %s, port: %d, known_hosts: []}}", server.Host, server.Port), nil)
	keys, err := g.HostKeys(t.Context(), "web1")
	if err != nil || len(keys) != 1 {
		t.Fatalf("HostKeys = %v, %v, want one", keys, err)
	}
	if file, err := g.Trust(keys[0]); gateway.Code(err) != "usage" || gateway.Hint(err) == "" {
		t.Errorf("Trust = %s, %v, want usage with a hint", file, err)
	}
}

// Where a key can't be written down, that is said, and what helps.
func TestTrustThatCannotBeRecorded(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	g := with(t, fmt.Sprintf("hosts: {web1: {addr: %s, port: %d, known_hosts: %s/known_hosts}}", server.Host, server.Port, file), nil)
	keys, err := g.HostKeys(t.Context(), "web1")
	if err != nil || len(keys) != 1 {
		t.Fatalf("HostKeys = %v, %v, want one", keys, err)
	}
	if _, err := g.Trust(keys[0]); gateway.Code(err) != "hostkey.unknown" || !strings.Contains(err.Error(), "not a directory") || !strings.Contains(gateway.Hint(err), file) {
		t.Errorf("Trust = %v, %s, hint %q, want hostkey.unknown and what helps", err, gateway.Code(err), gateway.Hint(err))
	}
}

// "hosts trust" knows no jump that is an address. The hint says what makes it one that
// it knows.
func TestTrustOfJumpByAddress(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	known := filepath.Join(t.TempDir(), "known_hosts")
	inventory := func(more string) string {
		return fmt.Sprintf("defaults: {user: %s, identity: %s, agent: false, known_hosts: %s}\nhosts:\n  web1: {addr: %s, port: %d, jump: %q}\n%s",
			server.User, server.KeyFile, known, server.Host, server.Port, server.Addr, more)
	}
	t.Setenv("HOME", t.TempDir())
	for more, hint := range map[string]string{
		"": fmt.Sprintf("gateway hosts trust 127.0.0.1, with `127.0.0.1: {port: %d}` among the inventory's hosts", server.Port),
		fmt.Sprintf("  127.0.0.1: {port: %d}", server.Port): "gateway hosts trust 127.0.0.1",
	} {
		g := with(t, inventory(more), nil)
		r := g.Exec(t.Context(), "web1", gateway.Command{Text: "true"})
		if want := "compare the fingerprint with the host's own, then run: " + hint; gateway.Code(r.Err) != "hostkey.unknown" || gateway.Hint(r.Err) != want {
			t.Errorf("%v, hint %q, want %q", r.Err, gateway.Hint(r.Err), want)
		}
		if _, err := g.HostKeys(t.Context(), "127.0.0.1"); (err == nil) != (more != "") {
			t.Errorf("HostKeys with %q = %v", more, err)
		}
	}
}
