package daemon_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
)

// Whatever the end of its command does to the shell, a session that was reset has
// a fresh one, and takes commands.
func TestResetOfAShellThatEnds(t *testing.T) {
	c := start(t, daemon.Config{})("")
	for range 3 {
		s := open(t, c, api.Open{})
		run(t, c, s.ID, "cd /usr; export v=kept")
		begin(t, c, s.ID, api.Run{Text: "exec sh -c 'echo in place of the shell; sleep 1000'"})
		if w, err := c.Wait(t.Context(), s.ID, api.Wait{Until: api.UntilMatch, Match: "^in place", Max: api.Duration(20 * time.Second)}); err != nil || !w.Met {
			t.Fatalf("Wait = %+v, %v", w, err)
		}
		if err := c.Reset(t.Context(), s.ID); err != nil {
			t.Fatalf("Reset = %v", err)
		}
		if r := run(t, c, s.ID, `pwd; echo $v`); string(r.Stdout) != "/usr\nkept\n" {
			t.Errorf("in the fresh shell: %q", r.Stdout)
		}
	}
}

// Who asks for a fresh shell while another one comes gets theirs, too.
func TestResetTwice(t *testing.T) {
	c := start(t, daemon.Config{})("")
	s := open(t, c, api.Open{})
	done := make(chan error)
	for range 3 {
		go func() { done <- c.Reset(t.Context(), s.ID) }()
	}
	for range 3 {
		if err := <-done; err != nil {
			t.Errorf("Reset = %v", err)
		}
	}
	run(t, c, s.ID, "true")
}

// A session that is closed while its fresh shell comes says so to who has asked for that.
func TestResetOfASessionThatIsClosed(t *testing.T) {
	c := start(t, daemon.Config{})("")
	s, reset := resetSlowly(t, c, api.Open{})
	closeSession(t, c, s.ID)
	if err := <-reset; gateway.Code(err) != "session.closed" {
		t.Errorf("Reset = %v, want session.closed", err)
	}
}

// A session whose link goes while its fresh shell comes is lost.
func TestResetOnALostLink(t *testing.T) {
	server := sshdtest.Start(t, sshdtest.Options{})
	proxy := netsim.Start(t, server.Addr, 0)
	c := start(t, daemon.Config{})("")
	s, reset := resetSlowly(t, c, api.Open{Target: gateway.Target{
		Name: "web1", Addr: "127.0.0.1", Port: proxy.Port(), User: server.User,
		Identities: []gateway.Identity{{Key: server.KeyFile}},
		HostKeys:   gateway.HostKeyRule{Policy: "accept-new", Write: filepath.Join(t.TempDir(), "known_hosts")},
	}})
	proxy.Cut(netsim.RST)
	if err := <-reset; gateway.Code(err) != "link.lost" {
		t.Errorf("Reset = %v, want link.lost", err)
	}
	eventually(t, "the session is over", func() bool {
		got, err := c.Session(t.Context(), s.ID)
		return err == nil && got.ClosedAt != nil
	})
	if got, err := c.Session(t.Context(), s.ID); err != nil || got.State != api.Lost {
		t.Errorf("Session = %+v, %v, want a lost one", got, err)
	}
}

// resetSlowly opens a session, and has it reset with a fresh shell that starts and never
// answers.
func resetSlowly(t *testing.T, c *client.Client, o api.Open) (s api.Session, reset chan error) {
	t.Helper()
	dir := t.TempDir()
	shell, slow := filepath.Join(dir, "sh"), filepath.Join(dir, "slow")
	script := "#!/bin/sh\n[ ! -e " + slow + " ] || { rm " + slow + "; exec sleep 1000; }\nexec sh \"$@\"\n"
	must(t, os.WriteFile(shell, []byte(script), 0o700))
	o.Shell = shell
	s = open(t, c, o)
	must(t, os.WriteFile(slow, nil, 0o600))
	reset = make(chan error, 1)
	go func() { reset <- c.Reset(t.Context(), s.ID) }()
	eventually(t, "a fresh shell starts", func() bool {
		_, err := os.Lstat(slow)
		return err != nil
	})
	return s, reset
}
