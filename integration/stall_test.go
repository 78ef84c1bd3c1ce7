package integration

import (
	"context"
	"sync"
	"testing"
	"time"

	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
	"gateway/session"
)

// TestLinkStallsInEveryPhase: a slow link that carries nothing for a while, and then
// all of it, changes nothing but the time.
func TestLinkStallsInEveryPhase(t *testing.T) {
	t.Parallel() // it waits, mostly
	for _, f := range phaseMachines(t) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			var all sync.WaitGroup
			place := make(chan struct{}, f.atOnce)
			for _, at := range []moment{atDial, atHostKey, atOffer, atOpen, atRun, atLine, atOutput, atEnd} {
				for _, ways := range [][]netsim.Direction{{netsim.Up}, {netsim.Down}, {netsim.Up, netsim.Down}} {
					all.Go(func() {
						place <- struct{}{}
						defer func() { <-place }()
						stall(t, f.far, at, ways)
					})
				}
			}
			all.Wait()
		})
	}
}

// stall makes one trip on which the link stalls.
func stall(t *testing.T, f far, at moment, ways []netsim.Direction) {
	const lasts = 700 * time.Millisecond
	p := newTrip(t, f, "")
	p.link.SetDelay(10 * time.Millisecond)
	p.keepalive = 5 * time.Second
	p.at(t, at, func() {
		p.link.Stall(ways...)
		time.AfterFunc(lasts, func() {
			p.link.Resume()
			p.allow("first")
			p.allow("go")
		})
	})
	defer p.run(t)()
	if p.result.Verdict != session.Exited || p.err != nil || p.result.ExitCode != 0 || string(p.result.Stdout) != "up\n" || p.seen.String() != "up\n" || p.lines() != 1 {
		t.Errorf("%s, %v: got %s %d %q, %d lines, %v", at, ways, p.result.Verdict, p.result.ExitCode, p.result.Stdout, p.lines(), p.err)
	}
	if p.took < lasts {
		t.Errorf("%s, %v: it took %v, and so did not stall", at, ways, p.took)
	}
}

// TestLinkStallsBehindACommand: nobody wants it ended, so what is asked of its shell and
// its streams is waited for as long as the link may be alive.
func TestLinkStallsBehindACommand(t *testing.T) {
	t.Parallel() // it waits, mostly
	server := sshdtest.Start(t, sshdtest.Options{})
	for _, test := range []struct {
		name, text string
		stdout     string
		verdict    session.Verdict
		code       int
	}{
		{"which had an answer", `printf "name? " >/dev/tty; read n </dev/tty; echo $n; sleep 0.3`, "bob\n", session.Exited, 0},
		{"which has left its line", `echo up; sleep 0.3; kill -INT $$; echo never`, "up\n", session.Exited, 130},
		{"which was interrupted", `sh -c 'trap "echo out; sleep 0.3; exit 3" INT; echo up; while :; do sleep 0.1; done'`, "up\nout\n", session.Interrupted, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			link := netsim.Start(t, server.Addr, 0)
			s := open(t, dial(t, server, link.Port()), session.Config{Shell: "bash"})
			s.Run(t.Context(), session.Command{Text: "cd /usr; V=kept"})
			stall := sync.OnceFunc(func() {
				link.Stall(netsim.Up)
				time.AfterFunc(12*time.Second, func() { link.Resume() })
			})
			interrupt := sync.OnceFunc(func() { s.Interrupt(session.Int) })
			seen := ""
			r, err := s.Run(t.Context(), session.Command{Text: test.text, Output: func(from session.Stream, b []byte) {
				if from != session.Stdout {
					return
				}
				if seen += string(b); test.verdict == session.Interrupted {
					interrupt()
				}
				if seen == test.stdout {
					stall()
				}
			}, Answer: func(context.Context, session.Prompt) (string, error) { return "bob", nil }})
			if r.Verdict != test.verdict || r.ExitCode != test.code || string(r.Stdout) != test.stdout || r.Ended {
				t.Errorf("got %s %d %q, ended: %v, %v", r.Verdict, r.ExitCode, r.Stdout, r.Ended, err)
			}
			if r, err := s.Run(t.Context(), session.Command{Text: "pwd; echo $V"}); err != nil || string(r.Stdout) != "/usr\nkept\n" {
				t.Errorf("afterwards: %s %q, %v", r.Verdict, r.Stdout, err)
			}
		})
	}
}

// TestLinkStallsAtTheDeadline: where a command's status has come, a shell that can't be
// reached by the deadline makes no secret of it.
func TestLinkStallsAtTheDeadline(t *testing.T) {
	t.Parallel() // it waits, mostly
	server := sshdtest.Start(t, sshdtest.Options{})
	link := netsim.Start(t, server.Addr, 0)
	s := open(t, dial(t, server, link.Port()), session.Config{Shell: "bash"})
	r, err := s.Run(t.Context(), session.Command{
		Text:    `printf "name? " >/dev/tty; read n </dev/tty; echo $n; (exit 3)`,
		Timeout: 3 * time.Second,
		Output: func(from session.Stream, _ []byte) {
			if from == session.Stdout {
				link.Stall(netsim.Up)
			}
		},
		Answer: func(context.Context, session.Prompt) (string, error) { return "bob", nil },
	})
	if r.Verdict != session.Exited || r.ExitCode != 3 || string(r.Stdout) != "bob\n" || !r.Ended || err != nil {
		t.Errorf("got %s %d %q, ended: %v, %v", r.Verdict, r.ExitCode, r.Stdout, r.Ended, err)
	}
	if r.Duration > 10*time.Second {
		t.Errorf("it took %v", r.Duration)
	}
}
