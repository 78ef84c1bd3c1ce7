package daemon_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/session"
)

// TestKeeperIsKilled: a session whose side channel was killed is one that can be
// used, as the list says.
func TestKeeperIsKilled(t *testing.T) {
	const keeper = `e=$(readlink /proc/self/fd/2); for p in /proc/[0-9]*; do
		[ "$(readlink $p/fd/4 2>&1)" = "$e" ] && [ "$(readlink $p/fd/6 2>&1)" = "$e" ] && echo ${p#/proc/} && break
	done`
	c := start(t, daemon.Config{})("")
	open(t, c, api.Open{Name: "work"})
	run(t, c, "work", "cd /usr; V=kept")
	for _, when := range []string{"while nothing ran", "during a command"} {
		pid := strings.TrimSpace(string(run(t, c, "work", keeper).Stdout))
		if when == "during a command" {
			if r := run(t, c, "work", "kill -9 "+pid+"; sleep 0.2"); r.Verdict != session.Unknown {
				t.Errorf("the command = %s, want unknown", r.Verdict)
			}
		} else if err := exec.Command("kill", "-9", pid).Run(); err != nil {
			t.Fatal(err)
		}
		if s, err := c.Session(t.Context(), "work"); err != nil || s.State != api.Idle {
			t.Fatalf("%s: Session = %+v, %v, want idle", when, s, err)
		}
		for deadline := time.Now().Add(20 * time.Second); ; {
			// The engine may hear of it a moment later; what runs meanwhile is unknown.
			r := run(t, c, "work", "pwd; echo $V")
			if r.Verdict == session.Exited && string(r.Stdout) == "/usr\nkept\n" {
				break
			}
			if r.Verdict != session.Unknown || time.Now().After(deadline) {
				t.Fatalf("%s: the next command = %s %q, want what it says", when, r.Verdict, r.Stdout)
			}
		}
	}
}
