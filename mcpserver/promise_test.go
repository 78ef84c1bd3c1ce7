package mcpserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/daemon/api"
)

// A client is promised no word of what changes, since none comes: one that waits for it
// would never see a session that is opened. And no cache between may show to others
// what one scope has.
func TestPromises(t *testing.T) {
	routes := http.NewServeMux()
	open := api.Session{ID: "s-1", Name: "s", Host: "web1", State: api.Idle}
	routes.HandleFunc("GET /v1/sessions", always([]api.Session{open}))
	routes.HandleFunc("GET /v1/sessions/{name}", always(open))
	routes.HandleFunc("POST /v1/sessions/s-1/output", onStdout("hi\n"))
	agent := agentOn(t, routes)
	has := agent.InitializeResult().Capabilities
	if has.Tools == nil || has.Tools.ListChanged || has.Resources == nil || has.Resources.ListChanged || has.Resources.Subscribe {
		t.Errorf("capabilities = %+v, %+v, want tools and resources, and no word of changes", has.Tools, has.Resources)
	}
	tools, err := agent.ListTools(t.Context(), nil)
	if err != nil || tools.CacheScope != "private" {
		t.Errorf("ListTools = %+v, %v, want it private", tools, err)
	}
	list, err := agent.ListResources(t.Context(), nil)
	if err != nil || len(list.Resources) != 2 || list.CacheScope != "private" {
		t.Errorf("ListResources = %+v, %v, want a host and a session, private", list, err)
	}
	read, err := agent.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "gateway://sessions/s/transcript"})
	if err != nil || read.CacheScope != "private" {
		t.Errorf("ReadResource = %+v, %v, want it private", read, err)
	}
}

// A transcript is not there where a daemon says so, and else it is not known.
func TestTranscriptOfSilentDaemon(t *testing.T) {
	routes := http.NewServeMux()
	routes.HandleFunc("GET /v1/sessions/{name}", func(w http.ResponseWriter, _ *http.Request) { refuse(w) })
	read, err := agentOn(t, routes).ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "gateway://sessions/s/transcript"})
	if err == nil || !strings.Contains(err.Error(), "daemon: it is ending") {
		t.Errorf("ReadResource = %+v, %v, want the daemon's error", read, err)
	}
}
