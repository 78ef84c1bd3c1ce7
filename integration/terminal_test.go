package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"gateway/session"
)

// TestTerminalBytesAreTheirCommands writes to the terminal in the moment a
// command ends. The bytes are in its result; over SSH, those of a program of
// which nobody could know may be in none. They are never in the next one's.
func TestTerminalBytesAreTheirCommands(t *testing.T) {
	script := filepath.Join(t.TempDir(), "quick")
	write(t, script, "printf x >/dev/tty\n", 0o600)
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

// TestPromptIsNoticedSoonOverSSH: half a second, if the machine has time, whatever
// the kind.
func TestPromptIsNoticedSoonOverSSH(t *testing.T) {
	t.Parallel() // it waits, mostly
	root := os.Getuid() == 0
	for _, machine := range machines(t, t.TempDir())[1:3] {
		for _, test := range []struct {
			text string
			tty  bool
			want session.Prompt
		}{
			{"printf 'Name: ' >/dev/tty; read x </dev/tty", false, session.Prompt{Text: "Name: ", Kind: session.LinePrompt, Root: root}},
			{"stty -echo </dev/tty; printf 'Password: ' >/dev/tty; read x </dev/tty; stty echo </dev/tty", false, session.Prompt{Text: "Password: ", Kind: session.PasswordPrompt, Root: root}},
			{"printf 'Go on? [y/N] '; read x", true, session.Prompt{Text: "Go on? [y/N] ", Kind: session.LinePrompt, Root: root}},
			{"printf '\\033[?1049h\\033[2;3Hmenu'; stty -icanon -echo; dd bs=1 count=1 >/dev/null 2>&1; stty icanon; printf '\\033[?1049l'", true, session.Prompt{Text: "menu", Kind: session.ScreenPrompt, Root: root}},
		} {
			t.Run(fmt.Sprintf("%s/%s/%s", machine.name, test.want.Kind, test.want.Text), func(t *testing.T) {
				s, err := session.Open(t.Context(), machine.open(t), session.Config{Shell: "bash", Term: "xterm"})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				best := time.Hour
				for range 3 {
					var said atomic.Int64
					begun := time.Now()
					_, err := s.Run(t.Context(), session.Command{
						Text: test.text, TTY: test.tty, Timeout: 20 * time.Second,
						Output: func(session.Stream, []byte) { said.Store(int64(time.Since(begun))) },
						Waiting: func(p *session.Prompt) {
							if p == nil {
								return
							}
							if best = min(best, time.Since(begun)-time.Duration(said.Load())); *p != test.want {
								t.Errorf("asked %+v, want %+v", *p, test.want)
							}
							_, _ = s.Write([]byte("y\n"))
						},
					})
					if err != nil {
						t.Fatal(err)
					}
				}
				if best > 500*time.Millisecond {
					t.Errorf("noticed after %v", best)
				}
				t.Log(best)
			})
		}
	}
}
