package session_test

import (
	"context"
	"testing"
	"time"

	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
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

// laggard is a machine whose terminal is slower than its pipes.
type laggard struct{ transport.Transport }

func (m laggard) Terminal(ctx context.Context, command string, options transport.TerminalOptions) (transport.Terminal, error) {
	t, err := m.Transport.Terminal(ctx, command, options)
	if err != nil {
		return nil, err
	}
	return lagging{t}, nil
}

type lagging struct{ transport.Terminal }

func (t lagging) Read(b []byte) (int, error) {
	time.Sleep(20 * time.Millisecond)
	return t.Terminal.Read(b)
}

// TestDrawnLate: yash switches attributes off for each line that it reads. That is no
// output, also where it comes when the line's command is over.
func TestDrawnLate(t *testing.T) {
	s, err := session.Open(t.Context(), laggard{local.New(local.Config{})}, session.Config{Shell: "yash", Term: "xterm"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 5 {
		runCommand(t, s, session.Command{Text: "echo on", TTY: true})
		want(t, run(t, s, "echo on"), 0, "on\n", "")
		want(t, run(t, s, "sleep 0.1; echo on"), 0, "on\n", "")
	}
}
