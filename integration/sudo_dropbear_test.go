package integration

import (
	"os/exec"
	"testing"
	"time"

	"gateway/internal/sshdtest"
	"gateway/session"
)

// TestSudoOverDropbear: it starts what it runs with SIGTTOU ignored, for which zsh has no
// need to be stopped on sudo's own terminal, and sudo none to pass on what is typed.
func TestSudoOverDropbear(t *testing.T) {
	t.Parallel()
	if err := exec.Command("env", "--default-signal=TTOU", "true").Run(); err != nil {
		sshdtest.Skip(t, "env of no GNU: %v", err)
	}
	server := sshdtest.StartDropbear(t, sshdtest.Options{Account: &sshdtest.Account{Sudoers: "Defaults use_pty\nroot ALL=(ALL) NOPASSWD: ALL\n"}})
	tr := dial(t, server, server.Port)
	for _, shell := range []string{"zsh", "bash", "dash"} {
		for _, tty := range []bool{false, true} {
			s, err := session.Open(t.Context(), tr, session.Config{Shell: shell, Sudo: &session.Sudo{}})
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.Run(t.Context(), session.Command{Text: "id -u", TTY: tty, Timeout: 20 * time.Second})
			if r.Verdict != session.Exited || err != nil {
				t.Errorf("%s, tty %v: got %s %q %q, %v", shell, tty, r.Verdict, r.Stdout, r.Stderr, err)
			}
			s.Close()
		}
	}
}
