package integration

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gateway/session"
)

// TestUptimeOfAContainer: lxcfs has /proc/uptime tell how long the container has run,
// while the processes' start times count from the start of the machine. A program that
// cleans up is interrupted once all the same: of a second one, most give up.
func TestUptimeOfAContainer(t *testing.T) {
	t.Parallel()
	tr := mounted(t, `echo 100.00 50.00 >"$0" && mount --bind "$0" /proc/uptime`, filepath.Join(t.TempDir(), "uptime"))
	const text = `sh -c 'trap "echo clean; sleep 1; exit 42" INT; sleep 0.3; (sleep 0.2; echo up) & sleep 1000; echo no'`
	for name, noTerminal := range map[string]bool{"terminal": false, "no terminal": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, tr, session.Config{Shell: "bash", NoTerminal: noTerminal})
			r, err := s.Run(t.Context(), session.Command{Text: text, Timeout: 10 * time.Second, Output: func(_ session.Stream, b []byte) {
				if strings.Contains(string(b), "up") {
					go s.Interrupt(session.Int)
				}
			}})
			if r.Verdict != session.Interrupted || r.ExitCode != 42 || string(r.Stdout) != "up\nclean\n" {
				t.Errorf("got %s %d %q, %v; want interrupted, 42, once", r.Verdict, r.ExitCode, r.Stdout, err)
			}
		})
	}
}
