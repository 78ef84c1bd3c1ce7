package integration

import (
	"sync"
	"testing"

	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
	"gateway/session"
)

// TestDropbearSessionsApart: when any program of a connection ends, dropbear 2022.83 ends
// the channels on it that are about to be used. So each session has a connection to itself,
// for both of its programs, and those of the others may come and go.
func TestDropbearSessionsApart(t *testing.T) {
	server := sshdtest.StartDropbear(t, sshdtest.Options{})
	link := netsim.Start(t, server.Addr, 0)
	tr := dial(t, server, link.Port())
	first := open(t, tr)
	if n := link.Conns(); n != 1 {
		t.Errorf("%d connections for a session", n)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 8 {
				s, err := session.Open(t.Context(), tr, session.Config{})
				if err != nil {
					t.Error(err)
					return
				}
				replies(t, s, "echo up", "up\n")
				s.Close()
			}
		})
	}
	all.Wait()
	replies(t, first, "echo up", "up\n")
}
