package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
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

// A session whose opening is cancelled when it is open already is nobody's: it closes.
func TestOpenIsCancelledTooLate(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	closes(t, ctx, gateway.Caller{Warn: func(string) { cancel() }}, func(w http.ResponseWriter, r *http.Request) {
		answer := json.NewEncoder(w)
		answer.Encode(api.OpenEvent{Session: &api.Session{ID: "s-1"}})
		answer.Encode(api.OpenEvent{Warning: "it is open"})
		http.NewResponseController(w).Flush()
		io.Copy(io.Discard, r.Body) // a server notices only then that the caller is gone
		<-r.Context().Done()
	})
}

// So is one that the daemon has opened when it learns that the caller has given up.
func TestOpenedTooLate(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	closes(t, ctx, gateway.Caller{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else nobody looks whether the caller is there
		cancel()
		<-r.Context().Done()
		json.NewEncoder(w).Encode(api.OpenEvent{Session: &api.Session{ID: "s-1"}})
	})
}

// closes wants that a session is closed whose opening is cancelled.
func closes(t *testing.T, ctx context.Context, caller gateway.Caller, open http.HandlerFunc) {
	t.Helper()
	closed := make(chan string, 1)
	routes := http.NewServeMux()
	routes.HandleFunc("POST /v1/sessions", open)
	routes.HandleFunc("DELETE /v1/sessions/{id}", func(w http.ResponseWriter, r *http.Request) {
		closed <- r.PathValue("id")
		json.NewEncoder(w).Encode(api.Session{})
	})
	server := httptest.NewServer(routes)
	defer server.Close()
	c := clientOf(server)
	defer c.Release()
	s, err := c.Open(ctx, api.Open{}, caller)
	if !errors.Is(err, context.Canceled) || s.ID != "" {
		t.Errorf("Open = %+v, %v", s, err)
	}
	select {
	case id := <-closed:
		if id != "s-1" {
			t.Errorf("%s was closed", id)
		}
	default:
		t.Error("it is still open")
	}
}

// A server cleans such names out of the path, and does something else then.
func TestNamesThatNothingHas(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()
	c := clientOf(server)
	defer c.Release()
	for name, code := range map[string]string{"": "usage", ".": "session.not_found", "..": "session.not_found"} {
		for what, call := range map[string]func() error{
			"Session": func() error { _, err := c.Session(t.Context(), name); return err },
			"Close":   func() error { _, err := c.Close(t.Context(), name); return err },
			"Screen":  func() error { _, err := c.Screen(t.Context(), name); return err },
			"Send":    func() error { return c.Send(t.Context(), name, api.Input{Text: "x"}) },
			"Follow":  func() error { return c.Follow(t.Context(), name, 0, nil) },
			"Command": func() error { _, err := c.Command(t.Context(), name, 1); return err },
			"Attach":  func() error { _, err := c.Attach(t.Context(), name, "me"); return err },
			"Run":     func() error { _, err := c.Run(t.Context(), name, api.Run{Text: "true"}); return err },
		} {
			if err := call(); gateway.Code(err) != code || errors.Is(err, client.ErrLost) || gateway.Hint(err) == "" {
				t.Errorf("%s(%q) = %v, want %s", what, name, err, code)
			}
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// Where a redirect leads, another request would be answered than the one that was sent.
func TestNoRedirects(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/sessions/work" {
			http.Redirect(w, r, "/elsewhere", http.StatusMovedPermanently)
			return
		}
		json.NewEncoder(w).Encode(api.Session{Name: "another"})
	}))
	defer server.Close()
	c := clientOf(server)
	defer c.Release()
	if s, err := c.Session(t.Context(), "work"); gateway.Code(err) != "daemon.unreachable" {
		t.Errorf("Session = %+v, %v", s, err)
	}
}

func clientOf(server *httptest.Server) *client.Client {
	return client.New(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", server.Listener.Addr().String())
	}, "")
}
