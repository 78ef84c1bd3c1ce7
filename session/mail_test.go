package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gateway/session"
	"gateway/transport/local"
)

// TestMail: a shell that looks for mail before it prompts, as sshd tells it to (MAIL), says
// nothing of it in the output of a command.
func TestMail(t *testing.T) {
	t.Parallel()
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			box := filepath.Join(home, "mail")
			grow := func(n int) {
				t.Helper()
				must(t, os.WriteFile(box, []byte(strings.Repeat("From a\n\nb\n", n)), 0o600))
				must(t, os.Chtimes(box, time.Now().Add(-time.Hour), time.Now().Add(time.Duration(n)*time.Minute)))
			}
			grow(1)
			machine := local.New(local.Config{Env: []string{"HOME=" + home, "MAIL=" + box, "MAILCHECK=0"}})
			s := openOn(t, machine, session.Config{Shell: shell})
			for n := range 3 {
				grow(n + 2)
				want(t, run(t, s, "/bin/echo $MAIL; (exit 3)"), 3, box+"\n", "")
				if r := run(t, s, "/bin/true"); len(r.Terminal) > 0 {
					t.Errorf("the terminal says %q", r.Terminal)
				}
			}
		})
	}
}
