package integration

import (
	"io"
	"sync"
	"testing"

	"gateway/gateway"
	"gateway/hosts"
	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transfer"
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

// TestDropbearOneLogin: what belongs to a session is on its connection all the same, so
// that nobody has to log in once more.
func TestDropbearOneLogin(t *testing.T) {
	server := sshdtest.StartDropbear(t, sshdtest.Options{})
	f := far{"dropbear", server, netsim.Start(t, server.Addr, 0), ""}
	inventory, err := hosts.Parse("hosts.yaml", []byte("hosts:\n  web1: "+f.pinned(f.link.Port())+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	g := gateway.New(gateway.Config{Inventory: inventory})
	defer g.Close()
	s, err := g.Open(t.Context(), "web1", gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	beside, err := s.Beside(t.Context(), gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close()
	files := s.Files()
	pipe, err := files.Pipe(t.Context(), "echo up")
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if out, err := io.ReadAll(pipe.Stdout); string(out) != "up\n" {
		t.Errorf("got %q, %v", out, err)
	}
	for _, s := range []*gateway.Session{s, beside} {
		if r := s.Run(t.Context(), gateway.Command{Text: "echo up"}); string(r.Stdout) != "up\n" {
			t.Errorf("got %s %q, %v", r.Verdict, r.Stdout, r.Err)
		}
	}
	if n := f.link.Conns(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	machine, err := transfer.Open(t.Context(), files)
	if err != nil {
		t.Fatal(err)
	}
	defer machine.Close()
	if n := f.link.Conns(); n != 1 {
		t.Errorf("%d connections with files, want 1", n)
	}
}
