package mcpserver_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/session"
	"gateway/transport"
)

// answered calls a tool, and returns what it answers and whether that is an error.
func answered(t *testing.T, agent *mcp.ClientSession, tool string, arguments any) (said string, failed bool) {
	t.Helper()
	r, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Errorf("%s = %v", tool, err)
		return "", true
	}
	return r.Content[0].(*mcp.TextContent).Text, r.IsError
}

// text is what it answers, whatever that is.
func text(t *testing.T, agent *mcp.ClientSession, tool string, arguments map[string]any) string {
	t.Helper()
	said, _ := answered(t, agent, tool, arguments)
	return said
}

// A command that is over has the same result by its session, whose answer comes
// without it, as by its id.
func TestResultBySession(t *testing.T) {
	begun := time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)
	command := api.Command{
		ID: "s-1.1", Session: "s-1", Host: "web1", Text: "echo hi; sleep 9", State: string(session.TimedOut),
		StartedAt: begun, To: 3, ExitCode: new(130),
	}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /v1/sessions/{name}", always(api.Session{ID: "s-1", Name: "s", Host: "web1", State: api.Idle, Command: &command, To: 3}))
	routes.HandleFunc("GET /v1/commands/s-1.1", func(w http.ResponseWriter, _ *http.Request) {
		c := command
		c.Result = &gateway.Result{
			Result: session.Result{
				Verdict: session.TimedOut, ExitCode: 130, Stdout: []byte("hi\n"), StdoutBytes: 3, Streams: session.Split,
				Cwd: "/tmp", Started: begun, Duration: 715 * time.Millisecond,
			},
			Err: &transport.Error{Code: "cmd.timeout", Message: "it took too long"},
		}
		reply(w, c)
	})
	routes.HandleFunc("POST /v1/sessions/s-1/output", onStdout("hi\n"))
	for tool, more := range map[string]map[string]any{"wait": {"until": "exit"}, "send": {}} {
		t.Run(tool, func(t *testing.T) {
			agent := agentOn(t, routes)
			ask := func(key, value string) string {
				arguments := map[string]any{key: value}
				for k, v := range more {
					arguments[k] = v
				}
				return text(t, agent, tool, arguments)
			}
			bySession, byID := ask("session", "s"), ask("id", "s-1.1")
			if bySession != byID {
				t.Errorf("by session: %s\nby id: %s", bySession, byID)
			}
			for _, want := range []string{`{"schema":"gateway.answer/v1","id":"s-1.1","host":"web1","session":"s",`, `"cwd":"/tmp"`, `"started_at":"2026-01-02T03:04:05.678901Z"`, `"duration_ms":715`, `"code":"cmd.timeout"`, `"stdout":"hi\n"`} {
				if !strings.Contains(bySession, want) {
					t.Errorf("by session: %s, want %s", bySession, want)
				}
			}
		})
	}
}

// onStdout is the output of a session that has said something on stdout alone.
func onStdout(said string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var q api.Query
		_ = json.NewDecoder(r.Body).Decode(&q) // as in reply
		var o api.Output
		if q.Stream == "stdout" {
			o.Pieces = []api.Piece{{Stream: q.Stream, Data: []byte(said)}}
		}
		reply(w, o)
	}
}
