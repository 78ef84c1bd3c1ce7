package gateway_test

import (
	"testing"

	"gateway/gateway"
	"gateway/session"
)

func TestSessionOutlivesItsCommands(t *testing.T) {
	g := gateway.New(gateway.Config{})
	defer g.Close()
	s, err := g.Open(t.Context(), "localhost", gateway.Options{Shell: "sh"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first := s.Run(t.Context(), gateway.Command{Text: "cd /; X=kept; f() { echo $X; }; exit_with() { return $1; }; exit_with 3"})
	if first.ExitCode != 3 || first.Err != nil || first.Cwd != "/" || first.Host != "localhost" || first.Session == "" || first.Connect == 0 {
		t.Errorf("got %+v, want status 3 in /", first)
	}
	second := s.Run(t.Context(), gateway.Command{Text: "f; pwd"})
	if string(second.Stdout) != "kept\n/\n" || second.Session != first.Session || second.ID == first.ID || second.Connect != 0 {
		t.Errorf("got %q in %s, want what the first one left", second.Stdout, second.Session)
	}

	beside, err := s.Beside(t.Context(), gateway.Options{Shell: "sh"})
	if err != nil {
		t.Fatal(err)
	}
	r := beside.Run(t.Context(), gateway.Command{Text: "echo ${X-none}"})
	if string(r.Stdout) != "none\n" || r.Session == first.Session {
		t.Errorf("beside it: %q in %s, want a shell of its own", r.Stdout, r.Session)
	}
	beside.Close()
	if r = s.Run(t.Context(), gateway.Command{Text: "exit 7"}); r.ExitCode != 7 || !r.Ended {
		t.Errorf("exit 7: %d, %v, want 7 and the end", r.ExitCode, r.Ended)
	}
	if r = s.Run(t.Context(), gateway.Command{Text: "true"}); r.Verdict != session.NotStarted || gateway.Code(r.Err) != "session.closed" {
		t.Errorf("after the end: %s, %v, want session.closed", r.Verdict, r.Err)
	}
}

func TestOpenSaysWhy(t *testing.T) {
	g := gateway.New(gateway.Config{})
	defer g.Close()
	if s, err := g.Open(t.Context(), "nope", gateway.Options{}); s != nil || gateway.Code(err) != "inventory.unknown_host" {
		t.Errorf("Open = %v, %v, want inventory.unknown_host", s, err)
	}
	if s, err := g.Open(t.Context(), "localhost", gateway.Options{Shell: "fish"}); s != nil || gateway.Code(err) != "shell.unsupported" {
		t.Errorf("Open = %v, %v, want shell.unsupported", s, err)
	}
}

// What is left to run after the hang-up finds no way any more.
func TestNothingIsOpenedAfterClose(t *testing.T) {
	g := gateway.New(gateway.Config{})
	g.Close()
	if s, err := g.Open(t.Context(), "localhost", gateway.Options{}); err == nil {
		s.Close()
		t.Error("Open opened a session behind Close")
	} else if gateway.Code(err) != "session.closed" {
		t.Errorf("Open = %v (%s), want session.closed: it is no fault of the gateway's own", err, gateway.Code(err))
	}
}
