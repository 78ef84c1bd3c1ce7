package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/gateway"
)

func TestOutputIsReadByCursor(t *testing.T) {
	dial := start(t, daemon.Config{})
	c := dial("")
	open(t, c, api.Open{Name: "work"})
	run(t, c, "work", "echo first")
	run(t, c, "work", "seq 1 50000; echo oops >&2")
	var whole []byte
	for at := int64(0); ; {
		o, err := c.Output(t.Context(), "work", api.Query{Since: at, Stream: "stdout", Max: 10000})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range o.Pieces {
			whole = append(whole, p.Data...)
		}
		if o.Next == at {
			break
		}
		at = o.Next
	}
	if !strings.HasPrefix(string(whole), "first\n1\n2\n") || !strings.HasSuffix(string(whole), "49999\n50000\n") {
		t.Errorf("read %d bytes, %.20q to %.20q", len(whole), whole, whole[len(whole)-20:])
	}
	o, err := c.Output(t.Context(), "work", api.Query{Stream: "stdout", Head: 6, Tail: 6})
	if err != nil || len(o.Pieces) != 2 || string(o.Pieces[0].Data) != "first\n" || string(o.Pieces[1].Data) != "50000\n" || o.Omitted != o.Total-12 {
		t.Errorf("Output = %+v, %v", o, err)
	}
	o, err = c.Output(t.Context(), "work", api.Query{Grep: "^4999[89]$|oops", Context: 1})
	if err != nil || o.Matches != 3 {
		t.Errorf("Output = %+v, %v", o, err)
	}
	if _, err := c.Output(t.Context(), "work", api.Query{Grep: "("}); gateway.Code(err) != "usage" {
		t.Errorf("a bad expression: %v", err)
	}
}

// The output of a command is not what another session has said meanwhile.
func TestOutputIsOfTheCommandsSession(t *testing.T) {
	c := start(t, daemon.Config{})("")
	a, b := open(t, c, api.Open{Name: "a"}), open(t, c, api.Open{Name: "b"})
	run(t, c, a.ID, "echo of a")
	r := run(t, c, b.ID, "echo of b")
	if o, err := c.Output(t.Context(), "b", api.Query{Command: r.ID}); err != nil || len(o.Pieces) != 1 || string(o.Pieces[0].Data) != "of b\n" {
		t.Errorf("Output = %+v, %v", o, err)
	}
	for range 2 { // while it is open, and afterwards
		if o, err := c.Output(t.Context(), "a", api.Query{Command: r.ID}); gateway.Code(err) != "session.not_found" {
			t.Errorf("Output = %+v, %v, want that there is no such command", o, err)
		}
		if _, err := c.Close(t.Context(), a.ID); err != nil && gateway.Code(err) != "session.closed" {
			t.Fatal(err)
		}
	}
}

// Who follows a session has had the output: a megabyte of it with each result is too much
// where hundreds do, and are slow.
func TestFollowTellsNothingTwice(t *testing.T) {
	c := start(t, daemon.Config{})("")
	s := open(t, c, api.Open{})
	const size = 100_000
	run(t, c, s.ID, "head -c 100000 /dev/zero; (exit 3)")
	enough := errors.New("enough")
	var said int
	err := c.Follow(t.Context(), s.ID, 0, func(e api.Event) error {
		if e.Piece != nil {
			said += len(e.Piece.Data)
		}
		if e.Event != "result" {
			return nil
		}
		if r := e.Command.Result; r == nil || r.ExitCode != 3 || r.StdoutBytes != size || len(r.Stdout) > 1 || !r.Truncated {
			t.Errorf("the result has %d bytes: %+v", len(r.Stdout), e.Command)
		}
		return enough
	})
	if !errors.Is(err, enough) || said != size {
		t.Errorf("Follow = %v behind %d bytes, want %d", err, said, size)
	}
}

func TestFollowTellsEverythingInOrder(t *testing.T) {
	dial := start(t, daemon.Config{})
	c := dial("")
	open(t, c, api.Open{Name: "work"})
	var got []string
	var connected sync.Once
	followed, follows := make(chan error, 1), make(chan struct{})
	go func() {
		followed <- dial("").Follow(t.Context(), "work", 0, func(e api.Event) error {
			connected.Do(func() { close(follows) })
			switch {
			case e.Piece != nil:
				got = append(got, e.Event+" "+string(e.Piece.Data))
			case e.Command != nil:
				got = append(got, e.Event+" "+e.Command.Text)
			default:
				got = append(got, e.Event)
			}
			return nil
		})
	}()
	run(t, c, "work", "echo a")
	run(t, c, "work", "echo b >&2")
	select {
	case <-follows: // a closed session can't be followed any more
	case err := <-followed:
		t.Fatalf("Follow = %v", err)
	}
	if s, err := c.Close(t.Context(), "work"); err != nil || s.State != api.Closed {
		t.Errorf("Close = %+v, %v", s, err)
	}
	if err := <-followed; err != nil {
		t.Errorf("Follow = %v", err)
	}
	want := []string{"started echo a", "stdout a\n", "result echo a", "started echo b >&2", "stderr b\n", "result echo b >&2", "closed"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestCallerMissesNothing has a caller take more than the transcript keeps, more
// slowly than it comes.
func TestCallerMissesNothing(t *testing.T) {
	dial := start(t, daemon.Config{TranscriptLimit: 1 << 20})
	c := dial("")
	open(t, c, api.Open{Name: "work"})
	const size = 6 << 20
	var got int
	err := c.Exec(t.Context(), "work", api.Run{Text: fmt.Sprintf("head -c %d /dev/zero", size), Limit: 10}, func(e api.Event) error {
		if time.Sleep(time.Millisecond); e.Piece != nil {
			got += len(e.Piece.Data)
		}
		if e.Event == "result" && (len(e.Command.Result.Stdout) != 10 || !e.Command.Result.Truncated) {
			t.Errorf("the result has %d bytes, truncated: %v, want 10", len(e.Command.Result.Stdout), e.Command.Result.Truncated)
		}
		if e.Dropped > 0 {
			t.Errorf("%d bytes are no longer there at %d", e.Dropped, got)
		}
		return nil
	})
	if err != nil || got != size {
		t.Errorf("got %d of %d bytes, %v", got, size, err)
	}
	// One that takes nothing holds up neither its command's end nor a deadline.
	stuck, leave := context.WithCancel(t.Context())
	up, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		first := sync.OnceFunc(func() { close(up) })
		c.Exec(stuck, "work", api.Run{Text: "yes"}, func(e api.Event) error {
			if e.Piece != nil {
				first()
				<-stuck.Done()
			}
			return nil
		})
	}()
	<-up
	if err := c.Interrupt(t.Context(), "work", api.Interrupt{Level: "int"}); err != nil {
		t.Error(err)
	}
	if w, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Max: api.Duration(20 * time.Second)}); err != nil || w.Command == nil || w.Command.State != "interrupted" {
		t.Errorf("Wait = %+v, %+v, %v", w, w.Command, err)
	}
	leave()
	<-left
}

// TestCallerOfTheNextCommand has the caller of a command read on while another
// one follows the next.
func TestCallerOfTheNextCommand(t *testing.T) {
	t.Parallel()
	dial := start(t, daemon.Config{})
	c := dial("")
	open(t, c, api.Open{Name: "work"})
	up, next := make(chan struct{}), make(chan struct{})
	earlier := make(chan error, 1)
	go func() {
		first := sync.OnceFunc(func() { close(up) })
		earlier <- c.Exec(t.Context(), "work", api.Run{Text: `head -c 3000000 /dev/zero | tr "\0" x`}, func(e api.Event) error {
			if e.Piece != nil {
				first()
				<-next
			}
			return nil
		})
	}()
	<-up
	if w, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilExit, Max: api.Duration(20 * time.Second)}); err != nil || !w.Met {
		t.Fatalf("Wait = %+v, %v", w, err)
	}
	var got int
	var waiting sync.Once
	err := c.Exec(t.Context(), "work", api.Run{Text: "echo up; read -r x </dev/tty; seq 10000", Timeout: api.Duration(time.Minute)}, func(e api.Event) error {
		if e.Piece == nil {
			return nil
		}
		got += len(e.Piece.Data)
		waiting.Do(func() {
			close(next)
			if err := <-earlier; err != nil {
				t.Errorf("the earlier one: %v", err)
			}
			// Before it is seen to wait, nothing is typed to it.
			if w, err := c.Wait(t.Context(), "work", api.Wait{Until: api.UntilPrompt, Max: api.Duration(20 * time.Second)}); err != nil || !w.Met {
				t.Errorf("Wait = %+v, %v", w, err)
			}
			if err := c.Send(t.Context(), "work", api.Input{Text: "on", Enter: true}); err != nil {
				t.Error(err)
			}
		})
		return nil
	})
	if want := len("up\n") + 48894; err != nil || got != want {
		t.Errorf("got %d of %d bytes, %v", got, want, err)
	}
}

// A line that matches is the command's that is meant, also once it is over.
func TestMatchIsOfTheCommand(t *testing.T) {
	c := start(t, daemon.Config{})("")
	s := open(t, c, api.Open{})
	first := run(t, c, s.ID, "echo first; printf fin")
	second := run(t, c, s.ID, "echo ished later")
	for match, met := range map[string][2]bool{"^first$": {true, false}, "^fin$": {true, false}, "later": {false, true}, "finished": {false, false}, "^ished": {false, true}} {
		for i, command := range []*gateway.Result{first, second} {
			w := api.Wait{Until: api.UntilMatch, Command: command.ID, Match: match, Max: api.Duration(20 * time.Second)}
			if waited, err := c.Wait(t.Context(), s.ID, w); err != nil || waited.Met != met[i] {
				t.Errorf("Wait for %q of %s = %+v, %v, want %v", match, command.ID, waited, err, met[i])
			}
		}
	}
}

// A line matches as output with grep finds it.
func TestMatchLikeGrep(t *testing.T) {
	c := start(t, daemon.Config{})("")
	s := open(t, c, api.Open{})
	run(t, c, s.ID, `printf 'listening\r\n\r\npart\r'`)
	for _, match := range []string{"^listening$", "^part$", "^$"} {
		w, err := c.Wait(t.Context(), s.ID, api.Wait{Until: api.UntilMatch, Match: match, Max: api.Duration(20 * time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		o, err := c.Output(t.Context(), s.ID, api.Query{Grep: match})
		if err != nil || len(o.Pieces) != 1 || !w.Met || w.Line != string(o.Pieces[0].Data) || w.At != o.Pieces[0].At {
			t.Errorf("Wait for %q = %v, %q at %d; grep finds %+v, %v", match, w.Met, w.Line, w.At, o.Pieces, err)
		}
	}
}

func TestEventsOfAllSessions(t *testing.T) {
	c := start(t, daemon.Config{})("")
	ctx, cancel := context.WithCancel(t.Context())
	events := make(chan api.Event, 64)
	followed := make(chan error, 1)
	go func() {
		followed <- c.Events(ctx, 0, func(e api.Event) error { events <- e; return nil })
	}()
	s := open(t, c, api.Open{Name: "work"})
	closeSession(t, c, "work")
	for _, want := range []string{"opened", "closed"} {
		if e := <-events; e.Event != want || e.Session == nil || e.Session.ID != s.ID {
			t.Errorf("event %+v, want %s", e, want)
		}
	}
	cancel()
	<-followed
}
