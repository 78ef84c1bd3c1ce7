package ssh_test

import (
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	gossh "golang.org/x/crypto/ssh"

	"gateway/internal/sshdtest"
	"gateway/transport/ssh"
)

func TestScanHostKeys(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{HostKeys: []string{"rsa", "ed25519"}})
	keys, err := ssh.ScanHostKeys(t.Context(), config(s))
	if err != nil || len(keys) != 2 || keys[0].Type() != "ssh-ed25519" || keys[1].Type() != "ssh-rsa" {
		t.Errorf("ScanHostKeys = %v, %v, want the ed25519 and the rsa key", keys, err)
	}
}

// A machine that shows no key shows why.
func TestScanFails(t *testing.T) {
	t.Run("no common algorithm", func(t *testing.T) {
		server := &gossh.ServerConfig{NoClientAuth: true}
		server.Ciphers = []string{gossh.InsecureCipherAES128CBC}
		keys, err := ssh.ScanHostKeys(t.Context(), serve(t, server))
		if len(keys) > 0 {
			t.Errorf("keys = %v, want none", keys)
		}
		wantCode(t, err, "ssh.no_common_algorithm", "aes128-cbc")
	})
	t.Run("not reached", func(t *testing.T) {
		bastion := sshdtest.Start(t, sshdtest.Options{Config: []string{"AllowTcpForwarding no"}})
		c, jump := config(bastion), config(bastion)
		jump.Name, c.Jump = "bastion", &jump
		_, err := ssh.ScanHostKeys(t.Context(), c)
		wantCode(t, err, "proxy.failed", "bastion forbids")
		if tries := strings.Count(bastion.Log(), "port forward"); tries > 1 {
			t.Errorf("tried %d times, want once:\n%s", tries, bastion.Log())
		}
	})
	t.Run("proxy command", func(t *testing.T) {
		ran := filepath.Join(t.TempDir(), "ran")
		c := ssh.Config{Name: "web1", User: "u", HostKeys: &ssh.HostKeys{Name: "web1"}, ProxyCommand: "echo x >>" + ran + "; echo no such tunnel >&2; exit 1"}
		_, err := ssh.ScanHostKeys(t.Context(), c)
		wantCode(t, err, "proxy.failed", "no such tunnel")
		if tries := strings.Count(string(mustRead(t, ran)), "x"); tries != 1 {
			t.Errorf("tried %d times, want once", tries)
		}
	})
	// Of some of its keys nobody can say which line of known_hosts is an old one.
	for code, word := range map[string]string{"ssh.throttled": "Exceeded MaxStartups\r\n", "ssh.closed": ""} {
		t.Run("not all keys seen, "+code, func(t *testing.T) {
			server := &gossh.ServerConfig{NoClientAuth: true}
			server.AddHostKey(sshdtest.NewKey(t, "ed25519").Signer)
			var seen atomic.Int32
			c := listen(t, func(conn net.Conn) {
				if seen.Add(1) > 1 {
					say(word, nothing)(conn)
					return
				}
				_, _, _, _ = gossh.NewServerConn(conn, server) // the scan leaves before its end
			})
			c.ConnectTimeout = patience
			keys, err := ssh.ScanHostKeys(t.Context(), c)
			if len(keys) > 0 {
				t.Errorf("keys = %v, want none", keys)
			}
			wantCode(t, err, code)
		})
	}
}
