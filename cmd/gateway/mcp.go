package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/hosts"
	"gateway/internal/config"
	"gateway/mcpserver"
)

// mcpFlags are the flags of mcp.
type mcpFlags struct {
	hosts  string
	output int
}

// stdioScope is the scope of agents that are started as this user's programs.
const stdioScope = "mcp"

func (a *app) mcpCommand() *cobra.Command {
	f := mcpFlags{}
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve agents: the Model Context Protocol on stdin and stdout",
		Long: `Serve an agent over the Model Context Protocol, on stdin and stdout.

The agent gets sessions that stay on the hosts of the inventory; "gateway session"
shows them and takes them over. It can choose no key, no password, no file of
settings and no limit, accepts no host key, and reaches only the hosts that
--hosts selects. Sessions close a minute after their agent is gone, unless it
asked to keep them. The inventory is read when the server starts.`,
		Example: `  gateway mcp
  gateway mcp --hosts '@staging,!db1'`,
		Args:              exactly(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := a.mcpConfig(cmd.Context(), f)
			if err != nil {
				return err
			}
			defer config.Gateway.Close()
			server := mcpserver.New(config, stdioScope)
			defer server.Close()
			err = server.Run(cmd.Context(), &mcp.StdioTransport{})
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		},
	}
	cmd.Flags().StringVar(&f.hosts, "hosts", "", "`SELECTOR` of the hosts that may be used (default: all of the inventory but localhost)")
	cmd.Flags().IntVar(&f.output, "max-output", 16<<10, "`BYTES` of each stream in an answer, unless the call says it")
	if err := cmd.RegisterFlagCompletionFunc("hosts", a.completeSelector); err != nil {
		panic(err) // there is no such flag
	}
	return cmd
}

// mcpConfig reads what a server for agents may do.
func (a *app) mcpConfig(ctx context.Context, f mcpFlags) (mcpserver.Config, error) {
	if err := a.load(); err != nil {
		return mcpserver.Config{}, err
	}
	switch {
	case a.config.NoDaemon:
		return mcpserver.Config{}, &config.Error{Message: "no_daemon: the sessions of agents live in the daemon", Hint: "leave no_daemon unset for gateway mcp"}
	case f.output < 256 || f.output > 256<<10:
		return mcpserver.Config{}, &usageError{"--max-output: use 256 to 262144", "see gateway mcp --help"}
	}
	if slices.ContainsFunc(a.config.Settings(), func(s config.Setting) bool { return s.Key == "ssh_config" && s.Origin == "default" }) {
		a.config.SSHConfig = "off" // an agent gets what somebody gave it
	}
	inv, err := a.inventory()
	if err != nil {
		return mcpserver.Config{}, err
	}
	g := a.open(inv, nil, policyStrict)
	pick := func(selector string) ([]hosts.Host, error) { return a.selectHosts(ctx, g, inv, selector) }
	allowed, err := a.allowedHosts(pick, f.hosts)
	if err != nil {
		g.Close()
		return mcpserver.Config{}, err
	}
	daemon, err := a.daemons()
	if err != nil {
		g.Close()
		return mcpserver.Config{}, err
	}
	return mcpserver.Config{
		Gateway: g, Hosts: allowed, Select: pick, Daemon: daemon,
		Version: newVersionInfo().Version, Output: f.output, Log: a.log,
	}, nil
}

// allowedHosts returns the hosts that agents may use. An inventory without any
// is no reason not to start: the agent is told.
func (a *app) allowedHosts(pick func(string) ([]hosts.Host, error), selector string) ([]hosts.Host, error) {
	if selector != "" {
		return pick(selector)
	}
	all, err := pick("all")
	if gateway.Code(err) == "selector.empty" {
		a.warn("the inventory has no hosts: agents have none to use")
		return nil, nil
	}
	return all, err
}

// daemons returns what finds the daemon, and starts it where it may.
func (a *app) daemons() (func(context.Context, string) (*client.Client, error), error) {
	path, err := a.socket()
	if err != nil {
		return nil, err
	}
	start, err := a.startOptions(path)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	clients := map[string]*client.Client{}
	return func(ctx context.Context, scope string) (*client.Client, error) {
		mu.Lock()
		c := clients[scope]
		if c == nil {
			c = client.At(path, scope)
			clients[scope] = c
		}
		mu.Unlock()
		_, err := c.Hello(ctx)
		if err != nil && ctx.Err() == nil && gateway.Code(err) != "daemon.version" && a.config.Starts() {
			_, err = client.Start(ctx, start)
		}
		return c, err
	}, nil
}
