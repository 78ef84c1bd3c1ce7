package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/internal/socket"
)

// A session that ends by itself while all are closed is closed. Named, it is none
// that could be.
func TestCloseSessionsThatEnd(t *testing.T) {
	home, err := os.MkdirTemp("", "gw") // short: there is a socket in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	env := append(environ(home), "GATEWAY_SOCKET="+serveEndings(t, filepath.Join(home, "run", "s")))
	if status, out, errs := callIn(t, env, "session", "close", "--all"); status != 0 || out != "stays closed\n" || errs != "" {
		t.Errorf("close --all: %d, %q, %q, want 0", status, out, errs)
	}
	if status, out, errs := callIn(t, env, "session", "close", "s-1", "s-2"); status != 1 || out != "stays closed\n" || errs == "" {
		t.Errorf("close by name: %d, %q, %q, want 1", status, out, errs)
	}
}

// serveEndings is a daemon with two sessions, of which one has ended when it is to
// be closed.
func serveEndings(t *testing.T, path string) string {
	t.Helper()
	routes := http.NewServeMux()
	routes.HandleFunc("GET /v1/sessions", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`[{"id":"s-1","name":"ends"},{"id":"s-2","name":"stays"}]`))
	})
	routes.HandleFunc("DELETE /v1/sessions/s-1", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusGone)
		_, _ = w.Write([]byte(`{"error":{"code":"session.closed","message":"daemon: session ends is over","hint":""}}`))
	})
	routes.HandleFunc("DELETE /v1/sessions/s-2", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"id":"s-2","name":"stays"}`))
	})
	l, err := socket.Listen(t.Context(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { // ends with ctx
		served <- daemon.Serve(ctx, l, routes, daemon.Life{Sessions: func() int { return 2 }, Drain: func(context.Context) {}})
	}()
	t.Cleanup(func() {
		end()
		if err := <-served; err != nil {
			t.Error(err)
		}
		l.Release()
	})
	return path
}

// What a signal cuts short takes nothing from what is done.
func TestCloseCutShort(t *testing.T) {
	out, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(os.ErrDeadlineExceeded)
	a := &app{out: newOutput(out, out, &console{}, nil)}
	err = a.tellClosed(ctx, false, []api.Session{{Name: "done"}, {}}, []error{nil, context.Cause(ctx)})
	text, _ := os.ReadFile(out.Name())
	if !errors.Is(err, os.ErrDeadlineExceeded) || string(text) != "done closed\n" {
		t.Errorf("close = %q, %v, want %q and the cause", text, err, "done closed\n")
	}
}
