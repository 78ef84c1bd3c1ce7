package session_test

import (
	"testing"

	"gateway/session"
)

// TestShellsDoNotDraw wants nothing on the terminal but what a command writes
// there, also on one that has attributes.
func TestShellsDoNotDraw(t *testing.T) {
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			s := open(t, session.Config{Shell: shell, Term: "xterm"})
			for _, text := range []string{"echo on", "sh -c 'echo on'", "stty echo icanon </dev/tty; echo on", "echo on", "stty raw </dev/tty; echo on"} {
				if r := run(t, s, text); string(r.Stdout) != "on\n" || len(r.Terminal) > 0 {
					t.Errorf("%s: %q, terminal %q", text, r.Stdout, r.Terminal)
				}
			}
			if r := runCommand(t, s, session.Command{Text: `printf '\033[mback'`, TTY: true}); string(r.Stdout) != "\x1b[mback" {
				t.Errorf("on the terminal %q", r.Stdout)
			}
		})
	}
}
