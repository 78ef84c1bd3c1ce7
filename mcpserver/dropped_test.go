package mcpserver_test

import (
	"net/http"
	"strings"
	"testing"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/session"
)

// An agent is told what has taken output away: a disk that is full is somebody's to
// clear, a limit is not.
func TestWhyOutputIsDropped(t *testing.T) {
	for says, why := range map[string]*gateway.JSONError{
		"40000 bytes could not be kept: transcript: write: no space left on device": {Code: "transcript.disk", Message: "transcript: write: no space left on device"},
		"40000 bytes were dropped: the session's transcript is full":                nil,
	} {
		command := api.Command{
			ID: "s-1.1", Session: "s-1", Host: "web1", State: string(session.Exited), ExitCode: new(0), To: 40000,
			Result: &gateway.Result{Result: session.Result{StdoutBytes: 40000, Streams: session.Split}},
		}
		routes := http.NewServeMux()
		routes.HandleFunc("GET /v1/sessions/{id}", always(api.Session{ID: "s-1", Name: "s", Host: "web1", State: api.Idle, To: 40000}))
		routes.HandleFunc("GET /v1/commands/{id}", always(command))
		routes.HandleFunc("POST /v1/sessions/s-1/commands", always(command))
		routes.HandleFunc("POST /v1/sessions/s-1/output", always(api.Output{Dropped: 40000, Why: why, Next: 40000}))
		agent := agentOn(t, routes)
		for tool, arguments := range map[string]map[string]any{
			"run":    {"session": "s", "command": "seq 9999"},
			"output": {"id": "s-1.1"},
		} {
			text, failed := answered(t, agent, tool, arguments)
			for _, want := range []string{`"stdout":"","stdout_bytes":40000,"truncated":true,`, `"notes":["` + says + `"]`} {
				if tool == "run" && !strings.Contains(text, want) { // once, and of no stream
					t.Errorf("%s = %s, want %s", tool, text, want)
				}
			}
			if failed || strings.Contains(text, says) != (tool == "run" || why != nil) {
				t.Errorf("%s = %s, want %q", tool, text, says)
			}
		}
	}
}
