package mcpserver_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/hosts"
	"gateway/mcpserver"
	"gateway/session"
	"gateway/transport"
)

// configOn is of a server with a daemon that a test makes up.
func configOn(t *testing.T, routes http.Handler) mcpserver.Config {
	t.Helper()
	daemon := httptest.NewServer(routes)
	t.Cleanup(daemon.Close)
	inv, err := hosts.Parse("hosts.yaml", []byte("hosts: {web1: {}, hidden1: {tags: [hidden]}}"))
	if err != nil {
		t.Fatal(err)
	}
	g := gateway.New(gateway.Config{Inventory: inv})
	t.Cleanup(func() { g.Close() })
	return mcpserver.Config{
		Hosts: []hosts.Host{{Name: "web1"}}, Gateway: g,
		Select: func(selector string) ([]hosts.Host, error) {
			parsed, err := hosts.ParseSelector(selector)
			if err != nil {
				return nil, err
			}
			return inv.Select(parsed, hosts.Lookup{})
		},
		Daemon: func(scope string) *client.Client {
			return client.New(func(ctx context.Context) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "tcp", daemon.Listener.Addr().String())
			}, scope)
		},
	}
}

// serverOn is such a server.
func serverOn(t *testing.T, routes http.Handler) *mcpserver.Server {
	t.Helper()
	server := mcpserver.New(configOn(t, routes), "test")
	t.Cleanup(server.Close)
	return server
}

// agentOn is an agent of such a server.
func agentOn(t *testing.T, routes http.Handler) *mcp.ClientSession {
	t.Helper()
	return agentOf(t, serverOn(t, routes))
}

// agentOf is an agent of a server.
func agentOf(t *testing.T, server *mcpserver.Server) *mcp.ClientSession {
	t.Helper()
	ours, theirs := mcp.NewInMemoryTransports()
	go server.Run(t.Context(), theirs) // ends with the client
	agent, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), ours, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agent.Close() })
	return agent
}

// reply is a daemon's answer; the test sees what is missing.
func reply(w http.ResponseWriter, answer any) { _ = json.NewEncoder(w).Encode(answer) }

// always is a daemon that gives one answer.
func always(answer any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { reply(w, answer) }
}

// refuse is what a daemon that is ending says to everything.
func refuse(w http.ResponseWriter) {
	w.WriteHeader(http.StatusServiceUnavailable)
	reply(w, api.Failure{Error: gateway.NewJSONError(&transport.Error{Code: "daemon.unreachable", Message: "daemon: it is ending"})})
}

// A daemon that dies before it says that the command has started may have
// started it; one that is ending has not.
func TestStartIsLost(t *testing.T) {
	for _, test := range []struct {
		name, verdict string
		answer        func(http.ResponseWriter)
	}{
		{"no answer", "unknown", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }},
		{"refused", "", refuse},
	} {
		t.Run(test.name, func(t *testing.T) {
			routes := http.NewServeMux()
			routes.HandleFunc("GET /v1/sessions/s", always(api.Session{ID: "s-1", Name: "s", Host: "web1", State: api.Idle}))
			routes.HandleFunc("POST /v1/sessions/s-1/commands", func(w http.ResponseWriter, _ *http.Request) { test.answer(w) })
			text, failed := answered(t, agentOn(t, routes), "run", map[string]any{"session": "s", "command": "date"})
			var said struct {
				Verdict string
				Error   struct{ Code string }
			}
			if err := json.Unmarshal([]byte(text), &said); err != nil || !failed || said.Verdict != test.verdict || said.Error.Code != "daemon.unreachable" {
				t.Errorf("run = %s, %v, want verdict %q", text, err, test.verdict)
			}
		})
	}
}

// A daemon that ends between a command's result and its output does not make the
// result unknown; what still waited for input is.
func TestOutputIsLost(t *testing.T) {
	for _, test := range []struct {
		name, says string
		command    api.Command
	}{
		{
			"over", `"verdict":"exited","exit_code":0,"stdout":"","stdout_bytes":100000,"truncated":true,`,
			api.Command{State: string(session.Exited), ExitCode: new(0), Result: &gateway.Result{Result: session.Result{StdoutBytes: 100000, Streams: session.Split}}},
		},
		{"waits", `"verdict":"unknown","stdout":"","duration_ms":`, api.Command{State: string(api.WaitingInput), Prompt: &api.Prompt{Text: "go on? ", Kind: "line"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			routes := http.NewServeMux()
			routes.HandleFunc("GET /v1/sessions/s", always(api.Session{ID: "s-1", Name: "s", Host: "web1", State: api.Idle}))
			routes.HandleFunc("POST /v1/sessions/s-1/commands", func(w http.ResponseWriter, _ *http.Request) {
				c := test.command
				c.ID, c.Session, c.Host, c.To = "s-1.1", "s-1", "web1", 100000
				reply(w, c)
			})
			routes.HandleFunc("POST /v1/sessions/s-1/output", func(w http.ResponseWriter, _ *http.Request) { refuse(w) })
			said := text(t, agentOn(t, routes), "run", map[string]any{"session": "s", "command": "seq 20000"})
			if !strings.Contains(said, test.says) || !strings.Contains(said, "it is ending") || strings.Contains(said, "go on?") {
				t.Errorf("run = %s, want %s, why, and no prompt", said, test.says)
			}
		})
	}
}

// A session for one command that the daemon was never told of is closed; the one
// of a command that it may have run is not.
func TestExecStartIsLost(t *testing.T) {
	for _, ran := range []bool{false, true} {
		s := api.Session{ID: "s-1", Name: "s-1", Host: "web1", State: api.Idle, Once: true}
		var closed atomic.Bool
		routes := http.NewServeMux()
		routes.HandleFunc("POST /v1/clients", func(w http.ResponseWriter, r *http.Request) {
			reply(w, api.Presence{Client: "c-1"})
			_ = http.NewResponseController(w).Flush() // as in reply
			<-r.Context().Done()
		})
		routes.HandleFunc("POST /v1/sessions", always(api.OpenEvent{Session: &s}))
		routes.HandleFunc("POST /v1/sessions/s-1/commands", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		routes.HandleFunc("GET /v1/sessions/s-1", func(w http.ResponseWriter, _ *http.Request) {
			now := s
			if ran {
				now.Command = &api.Command{ID: "s-1.1", Session: "s-1", State: string(api.Running)}
			}
			reply(w, now)
		})
		routes.HandleFunc("DELETE /v1/sessions/s-1", func(w http.ResponseWriter, _ *http.Request) {
			closed.Store(true)
			reply(w, s)
		})
		said := text(t, agentOn(t, routes), "exec", map[string]any{"host": "web1", "command": "date"})
		if !strings.Contains(said, `"verdict":"unknown"`) || closed.Load() == ran {
			t.Errorf("ran %v: exec = %s, session closed: %v", ran, said, closed.Load())
		}
	}
}

// A command that the daemon says nothing of for a while is not over: what is told of
// it then is told once.
func TestLostForAWhile(t *testing.T) {
	command := api.Command{ID: "s-1.1", Session: "s-1", Host: "web1", State: string(api.Running), StartedAt: time.Now(), To: 4}
	var answers atomic.Bool
	routes := http.NewServeMux()
	routes.HandleFunc("GET /v1/sessions/{name}", always(api.Session{ID: "s-1", Name: "s", Host: "web1", State: api.Running, Command: &command, To: 4}))
	routes.HandleFunc("GET /v1/commands/s-1.1", always(command))
	routes.HandleFunc("POST /v1/sessions/s-1/commands", always(command))
	routes.HandleFunc("POST /v1/sessions/s-1/wait", func(w http.ResponseWriter, _ *http.Request) {
		if !answers.Load() {
			panic(http.ErrAbortHandler)
		}
		reply(w, api.Waited{Command: &command})
	})
	routes.HandleFunc("POST /v1/sessions/s-1/output", onStdout("one\n"))
	agent := agentOn(t, routes)
	if said := text(t, agent, "run", map[string]any{"session": "s", "command": "make"}); !strings.Contains(said, `"verdict":"unknown"`) {
		t.Errorf("run = %s", said)
	}
	answers.Store(true)
	for _, want := range []string{`"stdout":"one\n"`, `"stdout":""`} {
		if said := text(t, agent, "wait", map[string]any{"id": "s-1.1", "until": "exit"}); !strings.Contains(said, want) || !strings.Contains(said, `"verdict":"running"`) {
			t.Errorf("wait = %s, want %s", said, want)
		}
	}
}

// What an agent is told to do about a limit, or a session that is closing, is what an
// agent can do, and true.
func TestRefusedInTheAgentsWords(t *testing.T) {
	refuse := func(status int, err *transport.Error) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			reply(w, api.Failure{Error: gateway.NewJSONError(err)})
		}
	}
	routes := http.NewServeMux()
	routes.HandleFunc("POST /v1/clients", func(w http.ResponseWriter, r *http.Request) {
		reply(w, api.Presence{Client: "c-1"})
		_ = http.NewResponseController(w).Flush() // as in reply
		<-r.Context().Done()
	})
	routes.HandleFunc("POST /v1/sessions", refuse(http.StatusTooManyRequests, &transport.Error{Code: "session.limit", Message: "daemon: 64 sessions are open on web1", Hint: "close some: gateway session list"}))
	routes.HandleFunc("GET /v1/sessions/{name}", always(api.Session{ID: "s-1", Name: "s", Host: "web1", State: api.Running, Reason: "closed"}))
	routes.HandleFunc("POST /v1/sessions/s-1/commands", refuse(http.StatusGone, &transport.Error{Code: "session.closed", Message: "daemon: session s is closing: closed", Hint: "open another session"}))
	agent := agentOn(t, routes)
	for tool, test := range map[string]struct {
		arguments    map[string]any
		want, wanted string
	}{
		"session_open": {map[string]any{"host": "web1"}, `"code":"session.limit"`, `"hint":"close some with sessions; `},
		"run":          {map[string]any{"session": "s", "command": "date"}, `"code":"session.closed"`, "session s is closing"},
	} {
		if said := text(t, agent, tool, test.arguments); !strings.Contains(said, test.want) || !strings.Contains(said, test.wanted) {
			t.Errorf("%s = %s, want %s and %s", tool, said, test.want, test.wanted)
		}
	}
}
