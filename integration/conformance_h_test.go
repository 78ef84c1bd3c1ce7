package integration

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/ssh"
)

// The cases of group H that no other test has; session/conformance/README.md
// says where the rest is.

// H6, H7: an account whose login shell runs no commands, or other ones, is a
// failed start with a reason, in time. A restricted bash may do either.
func TestH6NoUsableLoginShell(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	script := func(name, text string) string {
		path := filepath.Join(dir, name)
		write(t, path, "#!/bin/sh\n"+text, 0o755)
		return path
	}
	for name, shell := range map[string]string{
		"nologin":        "/usr/sbin/nologin",
		"false":          "/bin/false",
		"true":           "/bin/true",
		"menu":           script("menu", "echo 'Welcome to the router'; echo '1) status  2) exit'; printf 'choice> '; while read -r x; do printf 'choice> '; done\n"),
		"silent":         script("silent", "exec sleep 60\n"),
		"echo":           script("echo", "echo \"% unknown command: $2\"; exit 1\n"),
		"noise for ever": script("noise", "exec yes 'Welcome to the router'\n"),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(shell); err != nil {
				sshdtest.Skip(t, "no %s here: %v", shell, err)
			}
			server := sshdtest.Start(t, sshdtest.Options{Account: &sshdtest.Account{Shell: shell}})
			begun := time.Now()
			s, err := session.Open(t.Context(), dial(t, server, server.Port), session.Config{OpenTimeout: time.Second})
			if err == nil {
				s.Close()
				t.Fatal("Open = nil, want an error")
			}
			var coded *transport.Error
			if !errors.As(err, &coded) || coded.Hint == "" {
				t.Errorf("Open = %v, want an error with a code and a hint", err)
			}
			if took := time.Since(begun); sshdtest.Over(t, took, 5*time.Second) {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// H7: a restricted shell can't become another one: it works, or says why.
func TestH7RestrictedShell(t *testing.T) {
	if _, err := os.Stat("/usr/bin/rbash"); err != nil {
		sshdtest.Skip(t, "no rbash here: %v", err)
	}
	server := sshdtest.Start(t, sshdtest.Options{Account: &sshdtest.Account{Shell: "/usr/bin/rbash"}})
	s, err := session.Open(t.Context(), dial(t, server, server.Port), session.Config{OpenTimeout: 5 * time.Second})
	var coded *transport.Error
	switch {
	case err == nil:
		replies(t, s, "echo on", "on\n")
		s.Close()
	case !errors.As(err, &coded):
		t.Errorf("Open = %v, want an error with a code", err)
	}
}

// H9: fifty commands at once to one host, and the connection is idle again.
func TestH9FiftyAtOnce(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{Config: []string{"MaxStartups 100"}})
	tr := dial(t, server, server.Port)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			s, err := session.Open(t.Context(), tr, session.Config{Shell: "dash"})
			if err != nil {
				t.Errorf("session %d: %v", i, err)
				return
			}
			defer s.Close()
			replies(t, s, "echo "+strconv.Itoa(i), strconv.Itoa(i)+"\n")
		})
	}
	all.Wait()
	s := open(t, tr, session.Config{})
	replies(t, s, "echo on", "on\n")
}

// H10: a host that can't be reached fails for everybody who waits, and the next
// try dials again.
func TestH10AllWaitersHear(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			tr, err := ssh.Dial(t.Context(), sshConfig(server, sshdtest.ClosedPort))
			if err == nil {
				tr.Close()
			}
			if !errors.Is(err, transport.ErrUnreachable) {
				t.Errorf("Dial = %v, want ErrUnreachable", err)
			}
		})
	}
	all.Wait()
	replies(t, open(t, dial(t, server, server.Port), session.Config{}), "echo on", "on\n")
}

// H16: a host that can't be reached is an error, and nothing runs here instead.
func TestH16NeverHere(t *testing.T) {
	dir := t.TempDir()
	u := newUser(t, "hosts:\n  web1: {addr: 127.0.0.1, port: 1, agent: false, identity: /nonexistent}\n")
	got := u.gateway(t, "exec", "web1", "--", ": >"+dir+"/ran")
	if got.status != 125 || got.stdout != "" || !strings.HasPrefix(got.stderr, "gateway: ") {
		t.Errorf("got %d %q %q, want 125 and a reason", got.status, got.stdout, got.stderr)
	}
	if !empty(dir) {
		t.Error("the command ran on this machine")
	}
}

// H25: refused credentials are shown once.
func TestH25RefusedOnce(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	stranger := sshdtest.NewKey(t, "ed25519")
	config := sshConfig(server, server.Port)
	config.Identities = []ssh.Identity{{Path: stranger.File}}
	if _, err := ssh.Dial(t.Context(), config); !errors.Is(err, transport.ErrAuth) {
		t.Errorf("Dial = %v, want ErrAuth", err)
	}
	eventually(t, "the server has logged the end", func() bool { return strings.Contains(server.Log(), "[preauth]") })
	if n := strings.Count(server.Log(), "Connection from "); n != 1 {
		t.Errorf("%d connections, want one\n%s", n, server.Log())
	}
}
