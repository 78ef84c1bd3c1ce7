package mcpserver_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"gateway/daemon/api"
	"gateway/mcpserver"
)

// A server that is told to end while a client waits for a command has not cancelled
// it: the client may be there again, and what it runs goes on.
func TestServerEndsUnderACall(t *testing.T) {
	running := api.Command{ID: "s-1.1", Session: "s-1", Host: "web1", State: string(api.Running)}
	routes, waits := http.NewServeMux(), make(chan struct{})
	routes.HandleFunc("GET /v1/sessions/s", always(api.Session{ID: "s-1", Name: "s", Host: "web1", State: api.Running}))
	routes.HandleFunc("POST /v1/sessions/s-1/commands", always(running))
	routes.HandleFunc("GET /v1/commands/s-1.1", always(running))
	routes.HandleFunc("POST /v1/sessions/s-1/wait", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else nobody looks whether the caller is there
		close(waits)
		<-r.Context().Done()
	})
	routes.HandleFunc("POST /v1/sessions/s-1/interrupt", func(w http.ResponseWriter, _ *http.Request) {
		t.Error("the command is interrupted")
		refuse(w)
	})
	const token = "token-0123456789abcdef"
	handler, servers, err := mcpserver.Handler(configOn(t, routes), []mcpserver.Token{{Secret: token, Scope: "test", Name: "token"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers[0].Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancelCause(t.Context())
	told, over, served := errors.New("told to end"), make(chan struct{}), make(chan error)
	go func() {
		served <- mcpserver.Serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(over)
			handler.ServeHTTP(w, r)
		}))
	}()
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"session":"s","command":"sleep 60"},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+l.Addr().String(), strings.NewReader(call))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "run",
	} {
		request.Header.Set(name, value)
	}
	go http.DefaultClient.Do(request) // ends with the server
	select {
	case <-waits:
	case <-time.After(20 * time.Second):
		t.Fatal("nobody waits for the command")
	}
	end(told)
	<-over
	if err := <-served; err != told {
		t.Errorf("Serve = %v, want %v", err, told)
	}
}
