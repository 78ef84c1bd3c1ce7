package mcpserver_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"gateway/daemon/api"
)

// Where the clock has been set back, nothing has lasted for less than no time.
func TestClockIsSetBack(t *testing.T) {
	later := time.Now().Add(time.Hour)
	command := api.Command{ID: "s-1.1", Session: "s-1", Host: "web1", Text: "make", State: string(api.Running), StartedAt: later}
	s := api.Session{ID: "s-1", Name: "s", Host: "web1", State: api.Running, Command: &command, OpenedAt: later, UsedAt: later}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /v1/sessions", always([]api.Session{s}))
	routes.HandleFunc("GET /v1/sessions/s", always(s))
	routes.HandleFunc("POST /v1/sessions/s-1/wait", always(api.Waited{Command: &command}))
	routes.HandleFunc("POST /v1/sessions/s-1/output", always(api.Output{}))
	agent := agentOn(t, routes)
	for tool, arguments := range map[string]map[string]any{
		"wait":     {"session": "s", "until": "exit", "wait_ms": 1},
		"sessions": {"action": "list"},
	} {
		said, failed := answered(t, agent, tool, arguments)
		if failed || strings.Contains(said, ":-") || strings.Contains(said, " -") || !strings.Contains(said, "make") {
			t.Errorf("%s says %s", tool, said)
		}
	}
}
