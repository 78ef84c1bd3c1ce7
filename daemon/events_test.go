package daemon

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gateway/daemon/api"
)

// Who sees the sessions of a scope is told all the same what it was too slow for.
func TestEventsDroppedInAScope(t *testing.T) {
	d, err := New(Config{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for range 2*keptEvents + 1 {
		d.events.publish("state", api.Session{Scope: "theirs"})
	}
	d.events.publish("closed", api.Session{Scope: "ours"})
	over, end := context.WithCancel(t.Context())
	end() // with what there is
	r, w := httptest.NewRequestWithContext(over, http.MethodGet, "/v1/events?since=0", nil), httptest.NewRecorder()
	r.Header.Set(api.ScopeHeader, "ours")
	d.Handler().ServeHTTP(w, r)
	lines := strings.Split(w.Body.String(), "\n")
	if len(lines) < 2 || !strings.Contains(lines[0], `"event":"dropped"`) || !strings.Contains(lines[1], `"event":"closed"`) || strings.Contains(w.Body.String(), "theirs") {
		t.Errorf("told %.500q, want what was dropped, and the end of one", lines)
	}
}
