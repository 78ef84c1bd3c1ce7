package mcpserver_test

import (
	"net/http"
	"strings"
	"testing"

	"gateway/daemon/api"
)

// An agent sees that a line is not there as a whole, and on which side.
func TestGrepCut(t *testing.T) {
	routes := http.NewServeMux()
	routes.HandleFunc("GET /v1/sessions/s", always(api.Session{ID: "s-1", Name: "s", Host: "web1", State: api.Idle, To: 100}))
	routes.HandleFunc("POST /v1/sessions/s-1/output", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, api.Output{Next: 100, Matches: 1, Pieces: []api.Piece{
			{At: 3, Data: []byte("head"), Cut: api.CutBehind},
			{At: 20, Data: []byte("needle"), Cut: api.CutBoth, Match: true},
			{At: 60, Data: []byte("end"), Cut: api.CutBefore},
			{At: 64, Data: []byte("whole")},
		}})
	})
	said := text(t, agentOn(t, routes), "output", map[string]any{"session": "s", "grep": "needle"})
	if want := `"text":"3-head…\n20:…needle…\n60-…end\n64-whole\n"`; !strings.Contains(said, want) {
		t.Errorf("got %s, want %s", said, want)
	}
}
