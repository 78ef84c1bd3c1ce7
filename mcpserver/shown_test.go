package mcpserver_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/daemon/api"
)

// What one call has shown is not shown again because another one, which began
// before it, ends after it.
func TestShownOnce(t *testing.T) {
	const text = "seen by the slow one, and by the fast one"
	const slow = 20
	reply := func(w http.ResponseWriter, answer any) { _ = json.NewEncoder(w).Encode(answer) } // the test sees what is missing
	command := func(to int) api.Command {
		return api.Command{ID: "s-1.1", Session: "s-1", Host: "web1", State: string(api.Running), StartedAt: time.Now(), To: int64(to)}
	}
	waits, goOn := make(chan struct{}), make(chan struct{})
	routes := http.NewServeMux()
	routes.HandleFunc("GET /v1/sessions/s-1", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, api.Session{ID: "s-1", Name: "s", Host: "web1", State: api.Running})
	})
	routes.HandleFunc("GET /v1/commands/s-1.1", func(w http.ResponseWriter, _ *http.Request) { reply(w, command(0)) })
	routes.HandleFunc("POST /v1/sessions/s-1/wait", func(w http.ResponseWriter, r *http.Request) {
		var wait api.Wait
		_ = json.NewDecoder(r.Body).Decode(&wait) // as above
		c := command(len(text))
		if wait.Until == api.UntilMatch {
			c = command(slow)
			close(waits)
			<-goOn
		}
		reply(w, api.Waited{Command: &c})
	})
	routes.HandleFunc("POST /v1/sessions/s-1/output", func(w http.ResponseWriter, r *http.Request) {
		var q api.Query
		_ = json.NewDecoder(r.Body).Decode(&q) // as above
		var o api.Output
		if q.Stream == "stdout" {
			o.Pieces = []api.Piece{{Stream: q.Stream, At: q.Since, Data: []byte(text[q.Since:q.To])}}
		}
		reply(w, o)
	})
	agent := agentOn(t, routes)
	shown := func(tool string, arguments map[string]any) (stdout string, cursor int) {
		r, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil {
			t.Errorf("%s = %v", tool, err)
			return "", 0
		}
		var said struct {
			Stdout string
			Cursor int
		}
		if err := json.Unmarshal([]byte(r.Content[0].(*mcp.TextContent).Text), &said); err != nil || r.IsError {
			t.Errorf("%s = %+v, %v", tool, said, err)
		}
		return said.Stdout, said.Cursor
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if stdout, cursor := shown("wait", map[string]any{"id": "s-1.1", "until": "match", "match": "x"}); stdout != "" || cursor != len(text) {
			t.Errorf("the slow one shows %q up to %d", stdout, cursor)
		}
	}()
	<-waits
	if stdout, cursor := shown("send", map[string]any{"id": "s-1.1"}); stdout != text || cursor != len(text) {
		t.Errorf("the fast one shows %q up to %d", stdout, cursor)
	}
	close(goOn)
	<-ended
	if stdout, _ := shown("send", map[string]any{"id": "s-1.1"}); stdout != "" {
		t.Errorf("shown again: %q", stdout)
	}
}
