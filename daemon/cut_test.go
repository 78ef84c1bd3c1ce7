package daemon

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
)

// A request that the daemon's end has cut short is no success for a caller who is
// still there, and nobody says that nothing was done.
func TestRequestThatIsCut(t *testing.T) {
	for name, call := range map[string]func(*client.Client, *api.Command) error{
		"send": func(c *client.Client, next *api.Command) error {
			return c.Send(t.Context(), next.Session, api.Input{Text: "x", Command: next.ID})
		},
		"interrupt": func(c *client.Client, next *api.Command) error {
			return c.Interrupt(t.Context(), next.Session, api.Interrupt{Level: "int", Command: next.ID})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			entered := make(chan struct{})
			c, cut := cuttable(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				close(entered)
				s.daemon.Handler().ServeHTTP(w, r)
			}))
			_ = slowly(t, s, func(next *api.Command) { // which its shell has not got yet
				answered := make(chan error)
				go func() { answered <- call(c, next) }()
				<-entered
				cut()
				if err := <-answered; gateway.Code(err) != "daemon.unreachable" || !errors.Is(err, client.ErrLost) {
					t.Errorf("%v, want that no answer came", err)
				}
				s.close("enough")
			})
		})
	}
}

// Who follows a session is not told by the end of that that it was all, where the daemon's
// end has cut it.
func TestStreamThatIsCut(t *testing.T) {
	s := open(t)
	result(t, s, begin(t, s, "true"))
	c, cut := cuttable(t, s.daemon.Handler())
	told := 0
	err := c.Follow(t.Context(), s.session.ID, 0, func(api.Event) error {
		told++
		cut()
		return nil
	})
	if told == 0 || gateway.Code(err) != "daemon.unreachable" || !errors.Is(err, client.ErrLost) {
		t.Errorf("told %d times, then %v, want that the end did not come", told, err)
	}
}

// cuttable is a client of a daemon, and what ends all that it has under way there.
func cuttable(t *testing.T, daemon http.Handler) (c *client.Client, cut func()) {
	t.Helper()
	requests, cut := context.WithCancel(t.Context())
	server := httptest.NewUnstartedServer(daemon)
	server.Config.BaseContext = func(net.Listener) context.Context { return requests }
	server.Start()
	t.Cleanup(server.Close)
	c = client.New(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
	}, "")
	t.Cleanup(c.Release)
	return c, cut
}
