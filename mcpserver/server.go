// Package mcpserver is the agents' door: the tools of the Model Context
// Protocol on the daemon's sessions.
//
// Nothing that a model says can choose keys, passwords, files of settings or
// limits, accept a host key, or reach a host that the server was not given.
package mcpserver

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/hosts"
)

// Config says what a server may do.
type Config struct {
	// Gateway resolves the hosts. It must not be able to ask anybody.
	Gateway *gateway.Gateway
	// Hosts are those that may be touched, and Select picks from them.
	Hosts  []hosts.Host
	Select func(selector string) ([]hosts.Host, error)
	// Daemon returns a client of the daemon that sees one scope. Without it the
	// server can only be asked what it has.
	Daemon func(scope string) *client.Client
	// Version is the program's.
	Version string
	// Output is how many bytes of each stream an answer holds, unless the call
	// says it; 0 means 16 KiB.
	Output int
	// Absent is how long a client of HTTP may be silent before it counts as gone;
	// 0 means 30 minutes.
	Absent time.Duration
	// Log is told what can't be told to a client; nil drops it.
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Output = cmp.Or(c.Output, defaultOutput)
	c.Absent = cmp.Or(c.Absent, 30*time.Minute)
	if c.Daemon == nil {
		c.Daemon = func(scope string) *client.Client { return client.At("", scope) }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// A Server serves one scope: clients of one scope share its sessions, and see no
// others. It may serve any number of clients at once.
type Server struct {
	config   Config
	daemon   *client.Client
	allowed  map[string]hosts.Host
	names    []string
	schemas  map[string]*jsonschema.Schema // of the tools' arguments
	mcp      *mcp.Server
	shown    shown
	opened   opened
	here     presences
	machines machines
}

// New returns a server for a scope, which must not be empty.
func New(config Config, scope string) *Server {
	config = config.withDefaults()
	s := &Server{config: config, daemon: config.Daemon(scope), allowed: map[string]hosts.Host{}, schemas: map[string]*jsonschema.Schema{}}
	s.machines.gateway = config.Gateway
	for _, h := range s.config.Hosts {
		s.allowed[h.Name] = h
		s.names = append(s.names, h.Name)
	}
	slices.Sort(s.names)
	s.mcp = mcp.NewServer(
		&mcp.Implementation{Name: "gateway", Title: "gateway: persistent shells on remote hosts", Version: s.config.Version},
		&mcp.ServerOptions{
			Instructions: instructions, Logger: s.config.Log,
			// The SDK would promise to tell of every change in the lists.
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}},
			// What a server has is one scope's: hosts, sessions, and what was written in them.
			SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
		},
	)
	s.addTools()
	s.addResources()
	s.mcp.AddReceivingMiddleware(s.guard)
	return s
}

// Run serves one client over a transport until it is gone or ctx ends. The SDK's own
// Run would log the end of ctx as an error.
func (s *Server) Run(ctx context.Context, t mcp.Transport) error {
	client, err := s.mcp.Connect(serving(ctx), t, nil)
	if err != nil {
		return err
	}
	gone := make(chan struct{})
	go func() { // ends with the client
		err = client.Wait()
		close(gone)
	}()
	select {
	case <-gone:
		return err
	case <-ctx.Done():
		client.Close()
		<-gone
		return ctx.Err()
	}
}

// Close tells the daemon that no client is there any more, and lets go of the
// files of hosts.
func (s *Server) Close() {
	s.here.close()
	s.machines.close()
}

// guard stands before every request: it keeps a mistake in one call from ending
// all of them, and refuses what the schemas can't.
func (s *Server) guard(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.config.Log.Error("panic", "method", method, "panic", p, "stack", string(debug.Stack()))
				result, err = nil, fmt.Errorf("internal error in %s", method)
			}
		}()
		if method == "resources/list" {
			return s.listResources(ctx, req, next)
		}
		call, ok := req.(*mcp.CallToolRequest)
		if !ok {
			return next(ctx, method, req)
		}
		if err := checkArguments(call.Params.Arguments); err != nil {
			return failure(err), nil
		}
		if string(call.Params.Arguments) == "null" { // the SDK would fill the defaults into a nil map
			call.Params.Arguments = nil
		}
		call.Params.Arguments = withoutNulls(call.Params.Arguments, s.schemas[call.Params.Name])
		ctx, cancel := served(ctx)
		defer cancel()
		defer s.here.seen(call, s.config.Absent)()
		result, err = next(ctx, method, req)
		if r, ok := result.(*mcp.CallToolResult); ok && r != nil && r.IsError && r.StructuredContent == nil {
			return failure(s.misfit(call.Params, r)), nil
		}
		return result, err
	}
}
