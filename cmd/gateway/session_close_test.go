package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"testing"

	"gateway/daemon/api"
	"gateway/gateway"
)

// A session that ends by itself while all are closed is closed. Named, it is none
// that could be.
func TestCloseSessionsThatEnd(t *testing.T) {
	home := madeUp(t, map[string]http.HandlerFunc{
		"GET /v1/sessions": func(w http.ResponseWriter, _ *http.Request) {
			answer(w, []api.Session{{ID: "s-1", Name: "ends"}, {ID: "s-2", Name: "stays"}})
		},
		"DELETE /v1/sessions/s-1": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusGone)
			answer(w, api.Failure{Error: &gateway.JSONError{Code: "session.closed", Message: "daemon: session ends is over"}})
		},
		"DELETE /v1/sessions/s-2": func(w http.ResponseWriter, _ *http.Request) { answer(w, api.Session{ID: "s-2", Name: "stays"}) },
	})
	if status, out, errs := call(t, home, "session", "close", "--all"); status != 0 || out != "stays closed\n" || errs != "" {
		t.Errorf("close --all: %d, %q, %q, want 0", status, out, errs)
	}
	if status, out, errs := call(t, home, "session", "close", "s-1", "s-2"); status != 1 || out != "stays closed\n" || errs == "" {
		t.Errorf("close by name: %d, %q, %q, want 1", status, out, errs)
	}
}

// What a signal cuts short takes nothing from what is done.
func TestCloseCutShort(t *testing.T) {
	out, text := outputFile(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(os.ErrDeadlineExceeded)
	a := &app{out: out}
	err := a.tellClosed(ctx, false, []api.Session{{Name: "done"}, {}}, []error{nil, context.Cause(ctx)})
	if got := text(); !errors.Is(err, os.ErrDeadlineExceeded) || got != "done closed\n" {
		t.Errorf("close = %q, %v, want %q and the cause", got, err, "done closed\n")
	}
}
