package mcpserver_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"gateway/daemon/api"
	"gateway/internal/sshdtest"
)

// A program that does not read what is typed holds up no call: the answer says how
// it stands.
func TestSendUnread(t *testing.T) {
	command := api.Command{ID: "s-1.1", Session: "s-1", Host: "web1", State: string(api.Running), StartedAt: time.Now()}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /v1/sessions/s", always(api.Session{ID: "s-1", Name: "s", Host: "web1", State: api.Running, Command: &command}))
	routes.HandleFunc("GET /v1/commands/s-1.1", always(command))
	routes.HandleFunc("POST /v1/sessions/s-1/input", func(_ http.ResponseWriter, r *http.Request) {
		var in api.Input
		_ = json.NewDecoder(r.Body).Decode(&in) // a server notices only then that the caller is gone
		<-r.Context().Done()
	})
	agent := agentOn(t, routes)
	begun := time.Now()
	said := text(t, agent, "send", map[string]any{"session": "s", "text": strings.Repeat("abc\n", 5000), "wait_ms": 700})
	if took := time.Since(begun); took < 600*time.Millisecond || sshdtest.Over(t, took, 20*time.Second) {
		t.Errorf("answered after %v", took)
	}
	for _, want := range []string{`"verdict":"running"`, `"notes":["the program does not read: `, "interrupt with id s-1.1"} {
		if !strings.Contains(said, want) {
			t.Errorf("got %s, want %s", said, want)
		}
	}
}
