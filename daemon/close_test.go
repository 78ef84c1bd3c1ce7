package daemon_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/gateway"
)

// A session is closed at any moment of getting a fresh shell: it is over, and
// nobody waits for ever.
func TestCloseWhileAFreshShellComes(t *testing.T) {
	t.Parallel()
	c := start(t, daemon.Config{})("")
	for i := range 20 {
		s := open(t, c, api.Open{Reopen: true})
		wait := time.Duration(i*10) * time.Millisecond
		var both sync.WaitGroup
		both.Go(func() {
			if i%2 == 0 {
				_ = c.Reset(t.Context(), s.ID) // refused, or done before
				return
			}
			_, _ = c.Run(t.Context(), s.ID, api.Run{Text: "exit 3"}) // as above
		})
		time.Sleep(wait) // any moment will do
		closed := make(chan error, 1)
		go func() {
			_, err := c.Close(t.Context(), s.ID)
			closed <- err
		}()
		select {
		case err := <-closed:
			if err != nil {
				t.Errorf("Close after %v = %v", wait, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("Close after %v does not end", wait)
		}
		both.Wait()
		if s, err := c.Session(t.Context(), s.ID); err != nil || s.State != api.Closed {
			t.Errorf("after Close the session is %+v, %v", s, err)
		}
	}
}

// Whoever comes while a session gets a fresh shell is told so, also where no
// command has run yet.
func TestRunWhileReset(t *testing.T) {
	c := start(t, daemon.Config{})("")
	s := open(t, c, api.Open{})
	for range 5 {
		done := make(chan error, 1)
		go func() { done <- c.Reset(t.Context(), s.ID) }()
		for resetting := true; resetting; {
			select {
			case err := <-done:
				if err != nil {
					t.Fatalf("Reset = %v", err)
				}
				resetting = false
			default:
				if _, err := c.Run(t.Context(), s.ID, api.Run{Text: "\x00"}); err != nil && gateway.Code(err) != "session.busy" {
					t.Fatalf("Run = %v, want busy", err)
				}
			}
		}
	}
}

// Who runs a command and waits gets its result, however soon the next one comes.
func TestResultIsOfTheOwnCommand(t *testing.T) {
	dial := start(t, daemon.Config{})
	open(t, dial(""), api.Open{Name: "shared"})
	var all sync.WaitGroup
	for i := range 4 {
		c := dial("")
		all.Go(func() {
			for n := range 40 {
				want := fmt.Sprintf("%d-%d\n", i, n)
				run := api.Run{Text: "echo " + want, Wait: api.Duration(20 * time.Second)}
				got, err := c.Run(t.Context(), "shared", run)
				for gateway.Code(err) == "session.busy" {
					got, err = c.Run(t.Context(), "shared", run)
				}
				if err != nil || got.Result == nil || string(got.Result.Stdout) != want {
					t.Errorf("Run = %+v, %v, want %q", got, err, want)
					return
				}
			}
		})
	}
	all.Wait()
}

var errEnough = errors.New("enough")

// A reader that stops holds nobody up, and is told what it missed once it goes
// on.
func TestReaderThatStops(t *testing.T) {
	t.Parallel()
	dial := start(t, daemon.Config{TranscriptLimit: 1 << 20})
	c := dial("")
	s := open(t, c, api.Open{})
	stopped, goOn := make(chan struct{}), make(chan struct{})
	type seen struct {
		bytes, dropped int64
		missed         int
		last           string
	}
	followed := make(chan seen, 1)
	go func() {
		var f seen
		var once sync.Once
		err := dial("").Follow(t.Context(), s.ID, 0, func(e api.Event) error {
			once.Do(func() { close(stopped); <-goOn })
			switch e.Event {
			case "dropped":
				f.dropped += e.Dropped
				f.missed += e.Missed
			case "stdout":
				f.bytes += int64(len(e.Piece.Data))
			case "result":
				if f.last = e.Command.Text; strings.HasPrefix(f.last, "echo last") {
					return errEnough
				}
			}
			return nil
		})
		if !errors.Is(err, errEnough) {
			t.Errorf("Follow = %v", err)
		}
		followed <- f
	}()
	run(t, c, s.ID, "echo first")
	<-stopped
	run(t, c, s.ID, "head -c 4000000 /dev/zero")
	for range 150 {
		run(t, c, s.ID, ":")
	}
	run(t, c, s.ID, "echo last")
	close(goOn)
	f := <-followed
	info, err := c.Session(t.Context(), s.ID)
	if err != nil || f.bytes+f.dropped != info.To || f.dropped == 0 || f.missed == 0 {
		t.Errorf("the slow reader got %+v of %d bytes, %v", f, info.To, err)
	}
	// So is one that comes late.
	if o, err := c.Output(t.Context(), s.ID, api.Query{}); err != nil || o.Dropped != info.From {
		t.Errorf("Output = %d dropped, %v, want %d", o.Dropped, err, info.From)
	}
}
