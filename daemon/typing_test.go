package daemon

import (
	"context"
	"strings"
	"testing"
	"time"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/session"
)

// begin starts a command.
func begin(t *testing.T, s *live, text string) *api.Command {
	t.Helper()
	c, err := s.run(t.Context(), api.Run{Text: text, TTY: true})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// result waits for a command's end.
func result(t *testing.T, s *live, c *api.Command) *gateway.Result {
	t.Helper()
	w, err := s.waitFor(t.Context(), c, api.Wait{Until: api.UntilExit, Max: api.Duration(20 * time.Second)})
	if err != nil || !w.Met {
		t.Fatalf("waiting for %q = %+v, %v", c.Text, w, err)
	}
	return w.Command.Result
}

// slowly types to a command that is over when it does, while another one has been
// accepted. Meanwhile f is called.
func slowly(t *testing.T, s *live, f func(next *api.Command)) error {
	t.Helper()
	first := begin(t, s, "read x")
	s.mu.Lock()
	engine, err := s.running(t.Context(), first.ID)
	if err != nil {
		t.Fatal(err)
	}
	err = s.typing(0, func() error {
		if err := s.send(t.Context(), api.Input{Text: "x", Enter: true}); err != nil {
			t.Error(err)
		}
		result(t, s, first)
		f(begin(t, s, "read y; echo got $y"))
		return typeTo(engine, api.Input{Text: "for the first", Enter: true})
	})
	s.mu.Unlock()
	return err
}

// What is typed to a command, and is late, is not the next one's.
func TestTypedToNoOther(t *testing.T) {
	s := open(t)
	var next *api.Command
	err := slowly(t, s, func(c *api.Command) {
		next = c
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.until(ctx, func() bool { return s.begun }) == nil {
			t.Error("the next command begins while somebody types to the first")
		}
	})
	if gateway.Code(err) != "usage" {
		t.Errorf("typing to a command that is over: %v, want usage", err)
	}
	if err := s.send(t.Context(), api.Input{Text: "its own", Enter: true, Command: next.ID}); err != nil {
		t.Fatal(err)
	}
	if r := result(t, s, next); !strings.Contains(string(r.Stdout), "got its own") {
		t.Errorf("the next command says %q", r.Stdout)
	}
}

// Somebody who types for ever keeps no session open, nor a command from being
// stopped.
func TestTypedForEver(t *testing.T) {
	t.Run("close", func(t *testing.T) {
		s := open(t)
		err := slowly(t, s, func(*api.Command) { s.close("enough") })
		if err == nil || !s.info().State.Over() {
			t.Errorf("typed %v, session %s", err, s.info().State)
		}
	})
	t.Run("reset", func(t *testing.T) {
		s := open(t)
		_ = slowly(t, s, func(next *api.Command) {
			if err := s.reset(t.Context()); err != nil {
				t.Errorf("reset = %v", err)
			}
			if r := result(t, s, next); r.Verdict != session.NotStarted {
				t.Errorf("the next command: %+v", r)
			}
		}) // to a shell that is gone
		result(t, s, begin(t, s, "true"))
	})
	t.Run("interrupt", func(t *testing.T) { // so where the machine has no channel for its output
		s := open(t)
		_ = slowly(t, s, func(next *api.Command) {
			if err := s.interrupt(t.Context(), "", api.Interrupt{Level: string(session.Int), Command: next.ID}); err != nil {
				t.Errorf("interrupt = %v", err)
			}
			if r := result(t, s, next); r.Verdict != session.NotStarted || gateway.Code(r.Err) != "cmd.interrupted" {
				t.Errorf("the next command: %+v, %v", r, r.Err)
			}
		})
		result(t, s, begin(t, s, "true"))
	})
}

// What a command asks while something is still being typed to it is not what that
// answers: the engine tells it once.
func TestAskedWhileTyping(t *testing.T) {
	for name, test := range map[string]struct {
		second string
		person bool // is asked
	}{
		"a person": {"and yours? ", true},
		"sudo":     {"[sudo] password for x: ", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			looked := make(chan struct{})
			defer close(looked)
			s.sudoPassword = func(ctx context.Context) (string, error) {
				<-looked
				return "", context.Canceled
			}
			c := begin(t, s, "sleep 60")
			ask := func(text string) {
				s.waiting(t.Context(), &session.Prompt{Text: text, Kind: session.LinePrompt, Root: true})
			}
			ask("name? ")
			s.mu.Lock()
			if err := s.answering(0, func() error {
				s.waiting(t.Context(), nil)
				ask(test.second)
				return nil
			}); err != nil {
				t.Error(err)
			}
			if s.asks == nil || s.asks.Text != test.second || (c.Prompt == s.asks) != test.person {
				t.Errorf("it asks %+v, and who types %+v, want %q", s.asks, c.Prompt, test.second)
			}
			if err := s.answering(0, func() error { return nil }); err != nil || s.asks != nil || c.State != string(api.Running) {
				t.Errorf("answered: %v, it asks %+v and is %s", err, s.asks, c.State)
			}
			s.mu.Unlock()
			s.close("enough")
		})
	}
}

// What a program does not take is not collected without end, and it can be
// interrupted all the same.
func TestTypedToDeaf(t *testing.T) {
	s := open(t)
	c := begin(t, s, "sleep 60")
	const all, untaken = 8, 4
	typed := make(chan error, all)
	for range all {
		go func() { typed <- s.send(t.Context(), api.Input{Text: strings.Repeat("abc\n", maxUntaken/untaken/4)}) }()
	}
	late := time.After(20 * time.Second)
	for range all - untaken {
		select {
		case err := <-typed:
			if gateway.Code(err) != "session.busy" || gateway.Hint(err) == "" {
				t.Errorf("send = %v, want busy", err)
			}
		case <-late:
			t.Error("more is kept than that")
		}
	}
	if err := s.interrupt(t.Context(), "", api.Interrupt{Level: string(session.Int)}); err != nil {
		t.Error(err)
	}
	if r := result(t, s, c); r.Verdict != session.Interrupted {
		t.Errorf("the command: %+v", r)
	}
	for range untaken {
		<-typed
	}
	next := begin(t, s, "read x; echo got $x")
	if err := s.send(t.Context(), api.Input{Text: "more", Enter: true}); err != nil {
		t.Error(err)
	}
	if r := result(t, s, next); !strings.Contains(string(r.Stdout), "got more") {
		t.Errorf("the next command says %q", r.Stdout)
	}
}

// What panics while it types ends no more than its request: the session is as before.
func TestTypingPanics(t *testing.T) {
	s := open(t)
	c := begin(t, s, "read x; echo got $x")
	func() {
		defer func() {
			if recover() == nil { // as net/http does
				t.Error("no panic")
			}
		}()
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = s.typing(0, func() error { panic("typed") })
	}()
	if err := s.send(t.Context(), api.Input{Text: "x", Enter: true}); err != nil {
		t.Error(err)
	}
	if r := result(t, s, c); !strings.Contains(string(r.Stdout), "got x") {
		t.Errorf("it says %q", r.Stdout)
	}
	result(t, s, begin(t, s, "true"))
}
