package integration

import (
	"context"
	"errors"
	"testing"
	"time"

	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
	"gateway/session"
)

// On a slow link the answer to an interrupt takes longer than the ladder's
// patience on a fast one; a session must not be given up for that.
func TestSlowLink(t *testing.T) {
	t.Parallel() // it waits, mostly
	server := sshdtest.Start(t, sshdtest.Options{})
	proxy := netsim.Start(t, server.Addr, 150*time.Millisecond)
	s := open(t, dial(t, server, proxy.Port()), session.Config{})
	s.Run(t.Context(), session.Command{Text: "cd /usr; V=kept"})
	for _, text := range []string{"echo part; sleep 1000", `echo part; sh -c 'trap "" INT QUIT; while :; do sleep 0.1; done'`} {
		r, err := s.Run(t.Context(), session.Command{Text: text, Timeout: 500 * time.Millisecond})
		if r.Verdict != session.TimedOut || !errors.Is(err, context.DeadlineExceeded) || string(r.Stdout) != "part\n" || r.Ended || r.Cwd != "/usr" {
			t.Errorf("%s: got %s %q, cwd %q, ended %v, %v", text, r.Verdict, r.Stdout, r.Cwd, r.Ended, err)
		}
		if r, err := s.Run(t.Context(), session.Command{Text: "pwd; echo $V"}); err != nil || string(r.Stdout) != "/usr\nkept\n" {
			t.Errorf("afterwards: %q, %v", r.Stdout, err)
		}
	}
	// A prompt is noticed all the same, and nothing else is taken for one.
	r, err := s.Run(t.Context(), session.Command{Text: `printf "name? " >/dev/tty; read n </dev/tty; echo "$n"`, Answer: func(context.Context, session.Prompt) (string, error) { return "bob", nil }})
	if err != nil || string(r.Stdout) != "bob\n" {
		t.Errorf("answered: %q, %v", r.Stdout, err)
	}
}
