package integration

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
	"gateway/transport"
)

// TestCpBorrows: files go over the daemon's connection where it has one, and
// over one of their own where it has none, or loses it.
func TestCpBorrows(t *testing.T) {
	t.Parallel()
	server := sshdtest.Start(t, sshdtest.Options{})
	proxy := netsim.Start(t, server.Addr, 0)
	open, gone := dial(t, server, server.Port), dial(t, server, server.Port)
	gone.Close()
	lend := func(tr transport.Transport) http.Handler {
		return daemon.Lend(func(l api.Lend) (transport.Transport, func(), bool) {
			if l.Interactive {
				t.Error("nobody is there to ask")
			}
			return tr, func() {}, tr != nil
		}, nil)
	}
	u := newUser(t, "hosts:\n  web1: "+entryAt(server, proxy.Port())+"\n")
	base := u.env
	source := largeFile(t, 3<<20)
	for _, test := range []struct {
		name    string
		handler http.Handler
		args    []string
		dials   bool
	}{
		{name: "a connection is open", handler: lend(open)},
		{name: "none is", handler: lend(nil), dials: true},
		{name: "it has gone meanwhile", handler: lend(gone), dials: true},
		{name: "no daemon", dials: true},
		{name: "not wanted", handler: lend(open), args: []string{"--no-daemon"}, dials: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			u.env = append(slices.Clone(base), "GATEWAY_SOCKET="+filepath.Join(t.TempDir(), "none"))
			if test.handler != nil {
				u.env = append(slices.Clone(base), "GATEWAY_SOCKET="+serveSocket(t, test.handler))
			}
			before := proxy.Bytes(netsim.Up)
			there := filepath.Join(t.TempDir(), "copy")
			if o := u.gateway(t, append([]string{"cp", source, "web1:" + there}, test.args...)...); o.status != 0 {
				t.Fatalf("cp: %+v", o)
			}
			sameFiles(t, source, there)
			if dialled := proxy.Bytes(netsim.Up) > before; dialled != test.dials {
				t.Errorf("it made a connection of its own: %v, want %v", dialled, test.dials)
			}
			if left, err := os.ReadDir(filepath.Dir(there)); err != nil || len(left) != 1 {
				t.Errorf("left are %v, %v", left, err)
			}
		})
	}
}
