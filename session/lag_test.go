package session_test

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// A laden link brings what is sent over it only once other things are through, and in order.
type laden struct {
	mu    sync.Mutex // guards what follows
	holds bool
	held  []func()
	said  []string // what is held
}

func (l *laden) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds = true
}

func (l *laden) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, send := range l.held {
		send()
	}
	l.holds = false
}

func (l *laden) send(b []byte, to io.Writer) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.holds {
		return to.Write(b)
	}
	b = bytes.Clone(b)
	l.said = append(l.said, string(b))
	l.held = append(l.held, func() { to.Write(b) })
	return len(b), nil
}

type ladenTerminal struct {
	transport.Terminal
	link *laden
}

func (t ladenTerminal) Write(b []byte) (int, error) { return t.link.send(b, t.Terminal) }

// Heard implements [transport.Listener]: what it is laden with comes all the time.
func (t ladenTerminal) Heard() time.Time { return time.Now() }

type ladenStdin struct {
	io.WriteCloser
	link *laden
}

func (s ladenStdin) Write(b []byte) (int, error) { return s.link.send(b, s.WriteCloser) }

// TestDeadlineOnALadenLink: a link that has much else to carry is not dead, and what comes
// of an interrupt is waited for before there is more than that.
func TestDeadlineOnALadenLink(t *testing.T) {
	link := &laden{}
	s := openOn(t, altered{
		Transport: local.New(local.Config{}),
		terminal:  func(t transport.Terminal) transport.Terminal { return ladenTerminal{t, link} },
		pipe:      func(_ string, p *transport.Pipe) { p.Stdin = ladenStdin{p.Stdin, link} },
	}, session.Config{Shell: "bash"})
	want(t, run(t, s, "cd /usr"), 0, "", "")
	begin := sync.OnceFunc(func() {
		link.hold()
		time.AfterFunc(2300*time.Millisecond, link.release)
	})
	r, err := s.Run(t.Context(), session.Command{Text: "echo up; sleep 60", Timeout: 300 * time.Millisecond, Output: func(session.Stream, []byte) { begin() }})
	if r.Verdict != session.TimedOut || r.Ended || string(r.Stdout) != "up\n" {
		t.Errorf("got %s %q, ended: %v, %v; want timed_out, and a session that lives", r.Verdict, r.Stdout, r.Ended, err)
	}
	want(t, run(t, s, "pwd"), 0, "/usr\n", "")
	link.mu.Lock()
	defer link.mu.Unlock()
	for _, said := range link.said {
		if strings.Contains(said, "\x1c") || strings.Contains(said, "TERM") || strings.Contains(said, "KILL") {
			t.Errorf("%q was sent before anything could be known of the interrupt", said)
		}
	}
}

// mutedTerminal has a link of its own, which has brought nothing for long.
type mutedTerminal struct{ ladenTerminal }

func (t mutedTerminal) Heard() time.Time { return time.Time{} }

// TestCommandOnItsWay: a keeper with another link sees a shell that reads, for the command has
// not come yet. That is no question.
func TestCommandOnItsWay(t *testing.T) {
	t.Parallel() // it waits, mostly
	link := &laden{}
	s := openOn(t, altered{
		Transport: local.New(local.Config{}),
		terminal:  func(t transport.Terminal) transport.Terminal { return mutedTerminal{ladenTerminal{t, link}} },
	}, session.Config{Shell: "bash"})
	want(t, run(t, s, "cd /usr"), 0, "", "")
	link.hold()
	time.AfterFunc(12*time.Second, link.release)
	r, err := s.Run(t.Context(), session.Command{Text: "pwd"})
	if r.Verdict != session.Exited || string(r.Stdout) != "/usr\n" {
		t.Errorf("got %s %q, %v", r.Verdict, r.Stdout, err)
	}
}
