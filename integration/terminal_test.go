package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"gateway/session"
)

// TestTerminalBytesAreTheirCommands writes to the terminal in the moment a
// command ends. The bytes are in its result; over SSH, those of a program of
// which nobody could know may be in none. They are never in the next one's.
func TestTerminalBytesAreTheirCommands(t *testing.T) {
	script := filepath.Join(t.TempDir(), "quick")
	if err := os.WriteFile(script, []byte("printf x >/dev/tty\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, machine := range machines(t, t.TempDir()) {
		if !machine.tty {
			continue
		}
		tr := machine.open(t)
		for _, shell := range allShells {
			t.Run(machine.name+"/"+shell, func(t *testing.T) {
				s, err := session.Open(t.Context(), tr, session.Config{Shell: shell})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				said := func(text string) string {
					t.Helper()
					r, err := s.Run(t.Context(), session.Command{Text: text})
					if err != nil {
						t.Fatal(err)
					}
					return string(r.Terminal)
				}
				said("cd /")
				if got := said("sh " + script); got != "x" && (got != "" || machine.name == "local") {
					t.Errorf("terminal %q, want %q", got, "x")
				}
				for i := range 30 {
					if got := said("cd /"); got != "" {
						t.Errorf("terminal %q behind it, want nothing", got)
					}
					want := fmt.Sprintf("%d\x1eP", i) // the beginning of a mark
					if got := said(fmt.Sprintf(`printf '%d\036P' >/dev/tty`, i)); got != want {
						t.Errorf("terminal %q, want %q", got, want)
					}
				}
			})
		}
	}
}
