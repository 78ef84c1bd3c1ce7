package session_test

import (
	"strings"
	"testing"

	"gateway/session"
	"gateway/transport"
)

func TestScreenAndKeys(t *testing.T) {
	s := open(t, session.Config{Shell: "bash", Size: transport.Size{Cols: 40, Rows: 8}, Term: "xterm"})
	if got := s.Screen(); len(got.Rows) != 0 {
		t.Errorf("Screen = %v before anything was shown", got)
	}
	shows := func(what string, right func(session.Screen) bool) {
		t.Helper()
		eventually(t, what, func() bool { return right(s.Screen()) })
	}
	started := make(chan struct{})
	done := make(chan session.Result, 1)
	go func() {
		r, _ := s.Run(t.Context(), session.Command{
			Text: `printf '\033[?1049h\033[?1h\033[2;3Hmenu'; IFS= read -rsn3 key; printf '\033[4;1H%q' "$key"; read -rsn1; printf '\033[?1049l'; (exit 6)`,
			TTY:  true, Started: func() { close(started) },
		})
		done <- r
	}()
	<-started
	shows("the menu", func(v session.Screen) bool { return v.Alternate && len(v.Rows) == 8 && v.Rows[1] == "  menu" })
	must(t, s.Press("up"))
	shows("an arrow in application mode", func(v session.Screen) bool { return strings.Contains(v.Rows[3], "EOA") })
	if err := s.Press("hyper-x"); err == nil {
		t.Error("an unknown key was pressed")
	}
	must(t, s.Press("q"))
	if r := <-done; r.ExitCode != 6 || r.Streams != session.OnTerminal {
		t.Errorf("got %d on %s, want 6 on the terminal", r.ExitCode, r.Streams)
	}
	if v := s.Screen(); v.Alternate {
		t.Error("the alternate screen was left, and is still there")
	}
	want(t, run(t, s, "echo fine"), 0, "fine\n", "")
}
