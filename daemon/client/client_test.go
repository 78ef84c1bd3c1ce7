package client_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"gateway/daemon/api"
	"gateway/daemon/client"
)

// Large answers come in chunks, whose end stands behind the end of the JSON: one
// that is not read costs the connection.
func TestConnectionIsUsedAgain(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(make([]api.Session, 1000))
	}))
	defer server.Close()
	var dials atomic.Int32
	c := client.New(func(ctx context.Context) (net.Conn, error) {
		dials.Add(1)
		var d net.Dialer
		return d.DialContext(ctx, "tcp", server.Listener.Addr().String())
	}, "")
	defer c.Release()
	for range 3 {
		if list, err := c.Sessions(t.Context(), false); err != nil || len(list) != 1000 {
			t.Fatalf("%d sessions, %v", len(list), err)
		}
	}
	if n := dials.Load(); n != 1 {
		t.Errorf("%d connections for three calls", n)
	}
}
