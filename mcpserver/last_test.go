package mcpserver_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/daemon/api"
	"gateway/mcpserver"
)

// A client that pipes its calls in, and so has said all when they are read, gets the
// answers; but one that takes long keeps no server of a client that is gone.
func TestLastAnswers(t *testing.T) {
	running := api.Command{ID: "s-1.1", Session: "s-1", Host: "web1", State: string(api.Running), StartedAt: time.Now()}
	for _, test := range []struct {
		name  string
		comes bool
	}{{"soon", true}, {"late", false}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			waits, end := make(chan struct{}), make(chan struct{})
			routes := http.NewServeMux()
			routes.HandleFunc("GET /v1/sessions/s", always(api.Session{ID: "s-1", Name: "s", Host: "web1", State: api.Running, Command: &running}))
			routes.HandleFunc("POST /v1/sessions/s-1/wait", func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // a server notices only then that the caller is gone
				close(waits)
				select {
				case <-end:
					reply(w, api.Waited{Command: &running})
				case <-r.Context().Done():
				}
			})
			routes.HandleFunc("POST /v1/sessions/s-1/output", onStdout(""))
			in, say := io.Pipe()
			hear, out := io.Pipe()
			t.Cleanup(func() { hear.Close() })
			server, served := serverOn(t, routes), make(chan error)
			go func() {
				err := server.Run(t.Context(), mcpserver.Stdio(in, out))
				out.Close()
				served <- err
			}()
			fmt.Fprintln(say, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
			answers := bufio.NewScanner(hear)
			answers.Scan()
			fmt.Fprintln(say, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait","arguments":{"session":"s","until":"exit","wait_ms":50000}}}`)
			<-waits
			say.Close()
			if test.comes {
				close(end)
			}
			if came := answers.Scan() && strings.Contains(answers.Text(), `"id":2,"result"`); came != test.comes {
				t.Errorf("heard %q, want an answer: %v", answers.Text(), test.comes)
			}
			if err := <-served; err != nil && err != io.EOF {
				t.Errorf("Run = %v", err)
			}
		})
	}
}

// A server that is told to end has no error to log.
func TestToldToEnd(t *testing.T) {
	var log strings.Builder
	config := configOn(t, http.NewServeMux())
	config.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
	server := mcpserver.New(config, "test")
	t.Cleanup(server.Close)
	ctx, end := context.WithCancel(t.Context())
	end()
	_, theirs := mcp.NewInMemoryTransports()
	if err := server.Run(ctx, theirs); !errors.Is(err, context.Canceled) || log.Len() > 0 {
		t.Errorf("Run = %v, and logs %s", err, &log)
	}
}
