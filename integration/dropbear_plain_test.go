package integration

import (
	"testing"

	"gateway/internal/sshdtest"
	"gateway/session"
)

// TestDropbearWithoutTerminal: dropbear gives a shell without a terminal no session of its
// own. Those of one connection are none of each other's business all the same, and the
// server is nobody's.
func TestDropbearWithoutTerminal(t *testing.T) {
	server := sshdtest.StartDropbear(t, sshdtest.Options{})
	tr := dial(t, server, server.Port)
	open := func() *session.Session {
		s, err := session.Open(t.Context(), tr, session.Config{Shell: "dash", NoTerminal: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	first, second := open(), open()
	replies(t, second, "set -- $(cat /proc/$$/stat); [ $6 = $$ ] && echo its own", "its own\n")
	replies(t, first, "sleep 1000 & echo up", "up\n")
	first.Close()
	replies(t, second, "echo up", "up\n")
	second.Close()
	replies(t, open(), "echo up", "up\n")
}
