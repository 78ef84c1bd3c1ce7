package daemon_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/gateway"
)

// Whatever the end of its command does to the shell, a session that was reset has
// a fresh one, and takes commands.
func TestResetOfAShellThatEnds(t *testing.T) {
	c := start(t, daemon.Config{})("")
	for range 3 {
		s := open(t, c, api.Open{})
		run(t, c, s.ID, "cd /usr; export v=kept")
		if _, err := c.Run(t.Context(), s.ID, api.Run{Text: "exec sh -c 'echo in place of the shell; sleep 1000'"}); err != nil {
			t.Fatal(err)
		}
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
	dir := t.TempDir()
	shell, slow := filepath.Join(dir, "sh"), filepath.Join(dir, "slow")
	script := "#!/bin/sh\n[ ! -e " + slow + " ] || { rm " + slow + "; exec sleep 1000; }\nexec sh \"$@\"\n"
	if err := os.WriteFile(shell, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	c := start(t, daemon.Config{})("")
	s := open(t, c, api.Open{Shell: shell})
	if err := os.WriteFile(slow, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	reset := make(chan error)
	go func() { reset <- c.Reset(t.Context(), s.ID) }()
	eventually(t, "a fresh shell starts", func() bool {
		_, err := os.Lstat(slow)
		return err != nil
	})
	if _, err := c.Close(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if err := <-reset; gateway.Code(err) != "session.closed" {
		t.Errorf("Reset = %v, want session.closed", err)
	}
}
