package integration

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
)

// TestLoopWithoutTerminal ends a loop of short programs where no terminal sends an
// interrupt to the shell and its programs at once: bash goes on where only one of them
// has it. Sessions were lost to a deadline, and interrupts came to nothing, as one that
// waits for a program was taken for one at its prompt.
func TestLoopWithoutTerminal(t *testing.T) {
	t.Parallel()
	server := sshdtest.Start(t, sshdtest.Options{Config: []string{"MaxStartups 100"}, AuthorizedOptions: "restrict"})
	tr := dial(t, server, server.Port)
	for i := range 8 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			s, pid := bashOn(t, tr)
			for n := range 20 {
				faulty := sshdtest.WatchFault("bash", pid)
				command := session.Command{Text: "while /bin/sleep 0.01; do /bin/true; done", Timeout: 5 * time.Second}
				want, moment := session.Interrupted, time.Duration(rand.IntN(30))*time.Millisecond
				if n%2 == 0 {
					want, command.Timeout = session.TimedOut, moment+1
				} else {
					command.Started = func() { time.AfterFunc(moment, func() { _ = s.Interrupt(session.Int) }) }
				}
				r, err := s.Run(t.Context(), command)
				switch {
				case faulty() && r.Ended:
					t.Log("a fault of the shell itself: a fresh one")
					s, pid = bashOn(t, tr)
				case r.Verdict != want || r.Ended:
					t.Fatalf("after %v: got %s, ended %v, %v; want %s, in a session that lives", moment, r.Verdict, r.Ended, err, want)
				}
			}
		})
	}
}

// bashOn returns a session with bash, and the shell's process number.
func bashOn(t *testing.T, tr transport.Transport) (s *session.Session, pid string) {
	s = open(t, tr, session.Config{Shell: "bash"})
	r, err := s.Run(t.Context(), session.Command{Text: "echo $$"})
	if err != nil {
		t.Fatal(err)
	}
	return s, strings.TrimSpace(string(r.Stdout))
}
