package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/hosts"
	"gateway/internal/config"
	"gateway/mcpserver"
	"gateway/transport"
)

type mcpFlags struct {
	hosts  string
	output int
	http   string
	tokens []string
	absent duration
}

// stdioScope is the scope of agents that are started as this user's programs.
const stdioScope = "mcp"

func (a *app) mcpCommand() *cobra.Command {
	f := mcpFlags{absent: duration(30 * time.Minute)}
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve agents: the Model Context Protocol on stdio or HTTP",
		Long: `Serve an agent over the Model Context Protocol: on stdin and stdout, or with
--http any number of them over streamable HTTP.

The agent gets persistent sessions on the hosts of the inventory; "gateway
session" shows them and takes them over. It can choose no key, no password and
no settings file, cannot accept a host key, and reaches only the hosts that
--hosts selects. Sessions close a minute after their agent is gone, unless it
asked to keep them. The inventory is read when the server starts, and an
ssh_config only if the setting of that name is set; the inventory's "files:
{allow: [...], deny: [...]}" says which files of a host the tool file may touch.

Over HTTP every request needs a bearer token; each token sees only the sessions
of its own. There is no TLS: beyond this machine put a proxy with it in front,
which sends "Host: localhost": a request to this machine by another name is
refused. An address without a host is this machine only.`,
		Example: `  gateway mcp
  gateway mcp --hosts '@staging,!db1'
  gateway mcp --http :8765 --token env:MCP_TOKEN
  gateway mcp install claude`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args)
			}
			if f.http == "" {
				a.out.take() // the protocol's messages go there, and nothing else
			}
			if err := f.check(cmd); err != nil {
				return err
			}
			config, err := a.mcpConfig(cmd.Context(), f)
			if err != nil {
				return err
			}
			defer config.Gateway.Close()
			// The SDK takes a buffer of 32 KiB for every text that it decodes, eight in a call,
			// and half of the time for a call would go into collecting them. Memory that nobody
			// touches takes no room, but counts: that is done once in 10 MiB, not in 2.
			ballast := make([]byte, 8<<20)
			defer runtime.KeepAlive(ballast)
			if f.http != "" {
				return a.serveHTTP(cmd, config, f)
			}
			server := mcpserver.New(config, stdioScope)
			defer server.Close()
			err = server.Run(cmd.Context(), mcpserver.Stdio(os.Stdin, os.Stdout))
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		},
	}
	cmd.Flags().StringVar(&f.hosts, "hosts", "", "`SELECTOR` of the hosts that may be used (default all of the inventory but localhost)")
	cmd.Flags().IntVar(&f.output, "max-output", 16<<10, "`BYTES` of each stream in an answer, unless the call says it")
	cmd.Flags().StringVar(&f.http, "http", "", "listen for HTTP on `ADDRESS` in place of stdio, as in :8765")
	cmd.Flags().StringArrayVar(&f.tokens, "token", nil, "`REFERENCE` to a bearer token: "+hosts.ReferenceForms+"; may be repeated")
	cmd.Flags().Var(&f.absent, "absent", "a client of HTTP that is silent for that long is gone")
	a.completeSelectorOf(cmd, "hosts")
	cmd.AddCommand(a.mcpInstallCommand())
	return cmd
}

// check refuses flags that do not go together.
func (f mcpFlags) check(cmd *cobra.Command) error {
	switch {
	case f.http == "" && (len(f.tokens) > 0 || cmd.Flags().Changed("absent")):
		return usage(cmd, "", "--token and --absent are for --http")
	case f.http != "" && len(f.tokens) == 0:
		return usage(cmd, tokenHint, "--http needs a --token")
	case f.output < 256 || f.output > 256<<10:
		return usage(cmd, "", "--max-output: use 256 to 262144")
	case f.absent < duration(time.Second):
		return usage(cmd, "", "--absent: use one second or more")
	}
	for _, reference := range f.tokens {
		if _, _, err := hosts.ParseReference(reference); err != nil {
			return usage(cmd, tokenHint, "--token: %v", err)
		}
	}
	return nil
}

// tokenHint is for who has given no token that can be used.
const tokenHint = "make a token with: openssl rand -hex 32, and give it as --token env:NAME or --token file:PATH"

// readTokens resolves the references to tokens. Each has a scope of its own.
func readTokens(ctx context.Context, references []string) ([]mcpserver.Token, error) {
	var tokens []mcpserver.Token
	for _, reference := range references {
		secret, err := gateway.Secret(ctx, reference)
		if err != nil {
			return nil, &transport.Error{Code: gateway.Code(err), Message: "--token: " + err.Error(), Hint: tokenHint, Err: err}
		}
		tokens = append(tokens, mcpserver.Token{Secret: secret, Scope: tokenScope(reference, secret), Name: "--token " + hosts.ShowReference(reference)})
	}
	return tokens, nil
}

// tokenScope returns the scope of the sessions of a token's clients. The reference
// alone does not tell tokens apart: two servers may each have an env:TOKEN of their
// own. It is in lists and records of sessions, where the token and the text of a
// command, which may hold a secret, must not be.
func tokenScope(reference, secret string) string {
	hash := sha256.Sum256([]byte(reference + "\x00" + secret))
	if strings.HasPrefix(reference, "cmd:") {
		reference = "cmd:"
	}
	return fmt.Sprintf("%s:%s:%x", stdioScope, url.PathEscape(reference), hash[:8])
}

// serveHTTP serves agents over HTTP until ctx ends.
func (a *app) serveHTTP(cmd *cobra.Command, config mcpserver.Config, f mcpFlags) error {
	ctx := cmd.Context()
	tokens, err := readTokens(ctx, f.tokens)
	if err != nil {
		return err
	}
	config.Absent = time.Duration(f.absent)
	handler, servers, err := mcpserver.Handler(config, tokens)
	if err != nil {
		return err
	}
	defer func() {
		for _, s := range servers {
			s.Close()
		}
	}()
	address := f.http
	if host, port, err := net.SplitHostPort(address); err == nil && host == "" {
		address = net.JoinHostPort("127.0.0.1", port)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		hint := ""
		if errors.Is(err, syscall.EADDRINUSE) {
			hint = "something else listens there: choose another port; with 0 the system chooses one"
		}
		return usage(cmd, hint, "--http: %v", err)
	}
	// Also with --quiet: nothing else tells which port it is.
	a.out.say(fmt.Sprintf("gateway: agents are served on http://%s/", l.Addr()))
	return mcpserver.Serve(ctx, l, handler)
}

// mcpConfig reads what a server for agents may do.
func (a *app) mcpConfig(ctx context.Context, f mcpFlags) (mcpserver.Config, error) {
	if err := a.load(); err != nil {
		return mcpserver.Config{}, err
	}
	if a.config.NoDaemon {
		return mcpserver.Config{}, &config.Error{Code: config.CodeInvalid, Message: "no_daemon: the sessions of agents live in the daemon", Hint: "leave no_daemon unset for gateway mcp"}
	}
	var unread *hosts.SSHConfig
	if a.config.Origin("ssh_config") == "default" {
		unread, a.config.SSHConfig = a.sshConfig(), "off" // an agent gets what somebody gave it
	}
	a.borrow(false, false)
	g, err := a.open(nil, policyStrict)
	if err != nil {
		return mcpserver.Config{}, err
	}
	pick := func(selector string) ([]hosts.Host, error) { return a.selectHosts(ctx, g, selector) }
	allowed, err := a.allowedHosts(pick, f.hosts)
	if err != nil {
		g.Close()
		return mcpserver.Config{}, err
	}
	if left := leftTo(unread, allowed); left != nil {
		a.warn("agents get nothing of ssh_config, which has settings of " + hosts.FoldNames(left) + ": GATEWAY_SSH_CONFIG=auto, or the setting, has it read")
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

// leftTo returns the names of hosts that an ssh_config has settings of.
func leftTo(ssh *hosts.SSHConfig, allowed []hosts.Host) (names []string) {
	if ssh == nil {
		return nil
	}
	for _, host := range allowed {
		if known, err := ssh.Knows(host.Name); err == nil && known && !host.Local() {
			names = append(names, host.Name)
		}
	}
	return names
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

// daemons returns what makes a client of the daemon, which starts it where it
// may.
func (a *app) daemons() (func(scope string) *client.Client, error) {
	path, err := a.socket()
	if err != nil {
		return nil, err
	}
	start, err := a.startOptions(path)
	if err != nil {
		return nil, err
	}
	return func(scope string) *client.Client {
		if a.config.Starts() {
			return client.Starting(start, scope)
		}
		return client.At(path, scope)
	}, nil
}
