package daemon_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
)

// Scopes do not share names: what one calls work is no obstacle to another.
func TestScopesHaveTheirOwnNames(t *testing.T) {
	dial := start(t, daemon.Config{})
	a, b, all := dial("a"), dial("b"), dial("")
	first := open(t, a, api.Open{Name: "work"})
	if s, err := all.Session(t.Context(), "work"); err != nil || s.ID != first.ID {
		t.Errorf("a name that one scope has is %+v, %v", s, err)
	}
	second := open(t, b, api.Open{Name: "work"})
	for c, id := range map[*client.Client]string{a: first.ID, b: second.ID} {
		if s, err := c.Session(t.Context(), "work"); err != nil || s.ID != id {
			t.Errorf("work is %s, %v, want %s", s.ID, err, id)
		}
	}
	if _, err := all.Session(t.Context(), "work"); gateway.Code(err) != "usage" || !strings.Contains(gateway.Hint(err), first.ID) {
		t.Errorf("a name that two scopes have: %v (%s)", err, gateway.Hint(err))
	}
	if _, err := a.Close(t.Context(), "work"); err != nil {
		t.Fatal(err)
	}
	open(t, a, api.Open{Name: "work"}) // the place is free
}

func TestScopesSeeTheirOwn(t *testing.T) {
	dial := start(t, daemon.Config{})
	a, b := dial("a"), dial("b")
	s := open(t, a, api.Open{Name: "work"})
	run(t, a, "work", "echo secret of a")
	calls := map[string]func() error{
		"Session": func() error { _, err := b.Session(t.Context(), "work"); return err },
		"Run":     func() error { _, err := b.Run(t.Context(), s.ID, api.Run{Text: "id"}); return err },
		"Output":  func() error { _, err := b.Output(t.Context(), s.ID, api.Query{}); return err },
		"Command": func() error { _, err := b.Command(t.Context(), s.ID+".1", 0); return err },
		"Close":   func() error { _, err := b.Close(t.Context(), s.ID); return err },
		"Screen":  func() error { _, err := b.Screen(t.Context(), s.ID); return err },
		"Reset":   func() error { return b.Reset(t.Context(), s.ID) },
	}
	for name, call := range calls {
		if err := call(); gateway.Code(err) != "session.not_found" {
			t.Errorf("%s of another scope = %v, want session.not_found", name, err)
		}
	}
	if list, err := b.Sessions(t.Context(), true); err != nil || len(list) != 0 {
		t.Errorf("Sessions = %+v, %v", list, err)
	}
	if list, err := dial("").Sessions(t.Context(), false); err != nil || len(list) != 1 {
		t.Errorf("without a scope: %+v, %v", list, err)
	}
}

func TestWhoIsAttachedIsAlone(t *testing.T) {
	dial := start(t, daemon.Config{})
	c := dial("")
	open(t, c, api.Open{Name: "work"})
	ctx, detach := context.WithCancel(t.Context())
	held, err := c.Attach(ctx, "work", "Ada")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dial("").Run(t.Context(), "work", api.Run{Text: "echo"}); gateway.Code(err) != "session.busy" || !strings.Contains(err.Error(), "Ada") {
		t.Errorf("Run = %v, want busy with who", err)
	}
	if r, err := c.Run(t.Context(), "work", api.Run{Text: "echo mine", Attachment: held.Attachment, Wait: api.Duration(20 * time.Second)}); err != nil || string(r.Result.Stdout) != "mine\n" {
		t.Errorf("Run = %+v, %v", r, err)
	}
	for _, id := range []string{"", "another", held.Attachment, held.Attachment} {
		if err := c.Detach(t.Context(), "work", id); err != nil {
			t.Errorf("Detach = %v", err)
		}
		if s, err := c.Session(t.Context(), "work"); err != nil || (s.Attached == "") != (id == held.Attachment) {
			t.Errorf("behind Detach of %q: %+v, %v", id, s, err)
		}
	}
	run(t, c, "work", "echo free")
	if _, err := c.Attach(t.Context(), "work", "Bob"); err != nil {
		t.Fatal(err)
	}
	detach() // the request of an attachment that is over
	if err := c.Detach(t.Context(), "work", held.Attachment); err != nil {
		t.Errorf("Detach = %v", err)
	}
	if s, err := c.Session(t.Context(), "work"); err != nil || s.Attached != "Bob" {
		t.Errorf("got %+v, %v, want Bob's", s, err)
	}
}

// An attachment lasts as long as its request, whoever forgets to detach.
func TestAttachmentEndsWithItsRequest(t *testing.T) {
	c := start(t, daemon.Config{})("")
	open(t, c, api.Open{Name: "work"})
	ctx, leave := context.WithCancel(t.Context())
	if _, err := c.Attach(ctx, "work", "Ada"); err != nil {
		t.Fatal(err)
	}
	leave()
	eventually(t, "detached", func() bool {
		s, err := c.Session(t.Context(), "work")
		return err == nil && s.Attached == ""
	})
}

// Nobody is attached to a session that is over, not even who has ended it.
func TestAttachmentEndsWithItsSession(t *testing.T) {
	c := start(t, daemon.Config{})("")
	s := open(t, c, api.Open{})
	held, err := c.Attach(t.Context(), s.ID, "Ada")
	if err != nil {
		t.Fatal(err)
	}
	begin(t, c, s.ID, api.Run{Text: "exit", Attachment: held.Attachment})
	eventually(t, "session over", func() bool {
		s, err := c.Session(t.Context(), s.ID)
		return err == nil && s.State.Over()
	})
	if s, err := c.Session(t.Context(), s.ID); err != nil || s.Attached != "" {
		t.Errorf("attached to a session that is over: %q, %v", s.Attached, err)
	}
}

// What a person runs is not ended by an agent, which has a scope. Without one it is
// the machine's user, who may, as from another terminal.
func TestWhoIsAttachedIsNotInterrupted(t *testing.T) {
	dial := start(t, daemon.Config{})
	person, agent := dial(""), dial("agent")
	open(t, agent, api.Open{Name: "work"})
	s, err := agent.Session(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	ctx, detach := context.WithCancel(t.Context())
	defer detach()
	held, err := person.Attach(ctx, s.ID, "Ada")
	if err != nil {
		t.Fatal(err)
	}
	sleep := api.Run{Text: "sleep 600", Attachment: held.Attachment}
	c := begin(t, person, s.ID, sleep)
	for name, call := range map[string]func() error{
		"Run":           func() error { return runs(agent.Run(t.Context(), "work", api.Run{Text: "id"})) },
		"Send":          func() error { return agent.Send(t.Context(), "work", api.Input{Text: "x", Command: c.ID}) },
		"Interrupt":     func() error { return agent.Interrupt(t.Context(), "work", api.Interrupt{Level: "kill"}) },
		"Reset":         func() error { return agent.Reset(t.Context(), "work") },
		"Close":         func() error { _, err := agent.Close(t.Context(), "work"); return err },
		"Run by others": func() error { return runs(person.Run(t.Context(), s.ID, api.Run{Text: "id"})) },
	} {
		if err := call(); gateway.Code(err) != "session.busy" || !strings.Contains(err.Error(), "Ada") || !strings.Contains(gateway.Hint(err), "until they detach") {
			t.Errorf("%s = %v (%s), want busy with who", name, err, gateway.Hint(err))
		}
	}
	ends := func(who *client.Client, in api.Interrupt) {
		t.Helper()
		if err := who.Interrupt(t.Context(), s.ID, in); err != nil {
			t.Errorf("Interrupt(%+v) = %v", in, err)
		}
		if w, err := person.Wait(t.Context(), s.ID, api.Wait{Until: api.UntilExit, Max: api.Duration(20 * time.Second)}); err != nil || !w.Met {
			t.Errorf("Wait = %+v, %v", w, err)
		}
	}
	ends(agent, api.Interrupt{Level: "int", Attachment: held.Attachment})
	begin(t, person, s.ID, sleep)
	ends(person, api.Interrupt{Level: "int"})
	if closed, err := person.Close(t.Context(), s.ID); err != nil || closed.State != api.Closed {
		t.Errorf("Close = %+v, %v", closed, err)
	}
}
