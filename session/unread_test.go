package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gateway/session"
)

// TestUnreadIsNoCommand: what a command on the terminal left unread is not run by
// the shell, and nobody sees it.
func TestUnreadIsNoCommand(t *testing.T) {
	const secret = "correct horse"
	for name, typed := range map[string]string{
		"line":               "touch ran\n",
		"lines":              strings.Repeat("touch ran\n", 30),
		"part of a line":     "touch ran",
		"line behind an end": "\x04touch ran\n",
		"open quote":         "touch ran; '\n",
		"secret":             secret + "\n",
		"bytes":              "touch ran\n\x01\x80\xff\x1eP\n\x7f\x15touch ran\n",
	} {
		t.Run(name, func(t *testing.T) {
			eachShell(t, func(t *testing.T, s *session.Session) {
				dir := t.TempDir()
				gate := filepath.Join(dir, "gate")
				run(t, s, "mkfifo "+gate+"; cd "+dir)
				for _, next := range []session.Command{{Text: "echo next", TTY: true}, {Text: "echo next"}} {
					r := runCommand(t, s, session.Command{Text: "x=1; read y <gate", TTY: true, Timeout: 20 * time.Second, Started: func() {
						go func() {
							f, _ := os.OpenFile(gate, os.O_WRONLY, 0) // once it runs
							if _, err := s.WriteSecret([]byte(typed)); err != nil {
								t.Error(err)
							}
							f.Close()
						}()
					}})
					if r.ExitCode > 1 || r.Verdict != session.Exited {
						t.Fatalf("got %+v", r)
					}
					if r = runCommand(t, s, next); strings.TrimSpace(string(r.Stdout)) != "next" || len(r.Terminal) > 0 {
						t.Errorf("the next command says %q, and the terminal %q", r.Stdout, r.Terminal)
					}
					want(t, run(t, s, "echo $x"), 0, "1\n", "")
				}
				if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
					t.Error("the shell ran what was left")
				}
			})
		})
	}
}

// TestUnreadSecret: a prompt gets a line too many, which nothing takes back.
func TestUnreadSecret(t *testing.T) {
	const secret = "s3cretword"
	eachShell(t, func(t *testing.T, s *session.Session) {
		for _, tty := range []bool{false, true} {
			left(t, s, session.Command{Text: "printf 'Password: ' >/dev/tty; read p </dev/tty"}, func(session.Prompt) {
				if _, err := s.WriteSecret([]byte("first\n" + secret + "\n")); err != nil {
					t.Errorf("WriteSecret = %v", err)
				}
			})
			r := runCommand(t, s, session.Command{Text: "echo next", TTY: tty})
			if all := string(r.Stdout) + string(r.Stderr) + string(r.Terminal); strings.Contains(all, secret) || !strings.Contains(all, "next\n") {
				t.Errorf("the next command says %q", all)
			}
		}
	})
}
