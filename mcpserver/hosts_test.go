package mcpserver_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/gateway"
	"gateway/hosts"
	"gateway/mcpserver"
)

// The address of a host is that at which commands reach it, also where ssh_config alone
// has it.
func TestAddressOfSSHConfig(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ssh_config")
	if err := os.WriteFile(file, []byte("Host web1\n  HostName 10.0.0.7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := configOn(t, http.NotFoundHandler())
	inv := config.Gateway.Inventory()
	config.Gateway = gateway.New(gateway.Config{Inventory: inv, SSHConfig: hosts.NewSSHConfig(file, "")})
	t.Cleanup(func() { config.Gateway.Close() })
	server := mcpserver.New(config, "test")
	t.Cleanup(server.Close)
	agent := agentOf(t, server)
	want := `"address":"10.0.0.7"`
	for _, arguments := range []map[string]any{{}, {"select": "web*"}} {
		if got := text(t, agent, "hosts", arguments); !strings.Contains(got, want) {
			t.Errorf("hosts %v: %s, want %s", arguments, got, want)
		}
	}
	read, err := agent.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "gateway://hosts/web1"})
	if err != nil || !strings.Contains(read.Contents[0].Text, want) {
		t.Errorf("the resource: %v, %+v, want %s", err, read, want)
	}
}
