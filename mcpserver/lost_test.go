package mcpserver_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/hosts"
	"gateway/mcpserver"
	"gateway/transport"
)

// agentOn is an agent whose server has a daemon that a test makes up.
func agentOn(t *testing.T, routes http.Handler) *mcp.ClientSession {
	t.Helper()
	daemon := httptest.NewServer(routes)
	t.Cleanup(daemon.Close)
	server := mcpserver.New(mcpserver.Config{
		Hosts: []hosts.Host{{Name: "web1"}},
		Daemon: func(scope string) *client.Client {
			return client.New(func(ctx context.Context) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "tcp", daemon.Listener.Addr().String())
			}, scope)
		},
	}, "test")
	t.Cleanup(server.Close)
	ours, theirs := mcp.NewInMemoryTransports()
	go server.Run(t.Context(), theirs) // ends with the client
	agent, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), ours, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agent.Close() })
	return agent
}

// A daemon that dies before it says that the command has started may have
// started it; one that is ending has not.
func TestStartIsLost(t *testing.T) {
	for _, test := range []struct {
		name, verdict string
		answer        func(http.ResponseWriter)
	}{
		{"no answer", "unknown", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }},
		{"refused", "", func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusServiceUnavailable)
			err := &transport.Error{Code: "daemon.unreachable", Message: "daemon: it is ending"}
			_ = json.NewEncoder(w).Encode(api.Failure{Error: gateway.NewJSONError(err)}) // the test sees what is missing
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			routes := http.NewServeMux()
			routes.HandleFunc("GET /v1/sessions/s", func(w http.ResponseWriter, _ *http.Request) {
				_ = json.NewEncoder(w).Encode(api.Session{ID: "s-1", Name: "s", Host: "web1", State: api.Idle}) // as above
			})
			routes.HandleFunc("POST /v1/sessions/s-1/commands", func(w http.ResponseWriter, _ *http.Request) { test.answer(w) })
			agent := agentOn(t, routes)
			r, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "run", Arguments: map[string]any{"session": "s", "command": "date"}})
			if err != nil {
				t.Fatal(err)
			}
			var said struct {
				Verdict string
				Error   struct{ Code string }
			}
			text := r.Content[0].(*mcp.TextContent).Text
			if err := json.Unmarshal([]byte(text), &said); err != nil || !r.IsError || said.Verdict != test.verdict || said.Error.Code != "daemon.unreachable" {
				t.Errorf("run = %s, %v, want verdict %q", text, err, test.verdict)
			}
		})
	}
}
