package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gateway/hosts"
	"gateway/internal/config"
	"gateway/internal/phrase"
	"gateway/session"
)

// A snippet is what a person adds to their client's configuration.
type snippet struct {
	Client string `json:"client"`
	// Where says what to do with Text.
	Where string `json:"where"`
	Text  string `json:"text"`
}

// A launch is how a client starts the server.
type launch struct {
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Timeout int               `json:"timeout,omitempty"`
}

// mcpClients make the snippets.
var mcpClients = map[string]func(launch) snippet{
	"claude": func(l launch) snippet {
		l.Type = "stdio"
		return snippet{Where: "run", Text: "claude mcp add-json --scope user gateway " + session.Quote(compact(l))}
	},
	"cursor": func(l launch) snippet {
		return snippet{Where: "add to ~/.cursor/mcp.json", Text: indented("mcpServers", l)}
	},
	"vscode": func(l launch) snippet {
		l.Type = "stdio"
		return snippet{Where: `add to the file that "MCP: Open User Configuration" opens, or to .vscode/mcp.json`, Text: indented("servers", l)}
	},
	"codex": func(l launch) snippet {
		return snippet{Where: "add to ~/.codex/config.toml", Text: l.toml()}
	},
	"gemini": func(l launch) snippet {
		l.Timeout = 60_000
		return snippet{Where: "add to ~/.gemini/settings.json", Text: indented("mcpServers", l)}
	},
}

func (a *app) mcpInstallCommand() *cobra.Command {
	var selector string
	names := slices.Sorted(maps.Keys(mcpClients))
	cmd := &cobra.Command{
		Use:   "install " + strings.Join(names, "|"),
		Short: "Print an agent's configuration for gateway mcp",
		Long: `Print what makes an agent start "gateway mcp", with the settings in force here:
the files that they are in, the inventory, and the variables that set some. It
changes no file. Where it belongs is said on stderr, and a warning what keeps it
from starting as things are.`,
		Example: `  gateway mcp install claude | sh
  gateway mcp install codex --hosts @staging >>~/.codex/config.toml`,
		Args:      exactly("CLIENT"),
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			snippetOf, ok := mcpClients[args[0]]
			if !ok {
				hint := cmp.Or(hosts.DidYouMean(args[0], "", names), "known are "+strings.Join(names, ", "))
				return usage(cmd, hint, "unknown client %q", args[0])
			}
			if err := a.load(); err != nil {
				return err
			}
			l, err := a.launch(selector)
			if err != nil {
				return err
			}
			if server, err := a.mcpConfig(cmd.Context(), mcpFlags{hosts: selector}); err == nil {
				server.Gateway.Close()
			} else { // when the agent starts it, nobody may see why it does not
				a.warn("gateway mcp does not start as things are: " + err.Error())
			}
			s := snippetOf(l)
			s.Client = args[0]
			if a.out.format != "text" {
				return a.out.json(s)
			}
			if !a.config.Quiet {
				a.out.say("gateway: " + s.Where + ":")
			}
			return a.out.printf("%s\n", s.Text)
		},
	}
	cmd.Flags().StringVar(&selector, "hosts", "", "`SELECTOR` of the hosts that may be used")
	a.completeSelectorOf(cmd, "hosts")
	return cmd
}

// launch returns how this program is started as it is set up now. A client may
// give it another environment, so all of the environment that decides what the
// settings are, and where the daemon and its records, is said.
func (a *app) launch(selector string) (launch, error) {
	program, err := executable()
	if err != nil {
		return launch{}, err
	}
	l := launch{Command: program, Args: []string{"mcp"}, Env: map[string]string{}}
	if l.Env["GATEWAY_SOCKET"], err = a.socket(); err != nil {
		return launch{}, err
	}
	if file := a.source.Files()[0]; file.Named {
		if l.Env["GATEWAY_CONFIG"], err = filepath.Abs(file.Path); err != nil {
			return launch{}, err
		}
	}
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME"} {
		if dir := os.Getenv(name); filepath.IsAbs(dir) { // another one counts as not set
			l.Env[name] = dir
		}
	}
	for _, s := range a.config.Settings() {
		variable := strings.HasPrefix(s.Origin, config.Prefix)
		switch {
		case s.Key == "inventory" && (s.Origin == "--inventory" || variable):
			for _, file := range a.config.Inventory {
				path, err := filepath.Abs(file)
				if err != nil {
					return launch{}, err
				}
				l.Args = append(l.Args, "--inventory", path)
			}
		case s.Key == "socket": // it is there
		case s.Key == "log_file" && variable, s.Key == "ssh_config" && variable && a.config.SSHConfig != "auto" && a.config.SSHConfig != "off":
			if l.Env[s.Origin], err = filepath.Abs(fmt.Sprint(s.Value)); err != nil {
				return launch{}, err
			}
		case variable:
			l.Env[s.Origin] = fmt.Sprint(s.Value)
		}
	}
	if selector != "" {
		l.Args = append(l.Args, "--hosts", selector)
	}
	return l, nil
}

// compact returns a value as JSON on one line.
func compact(value any) string {
	text, err := phrase.JSON(value)
	if err != nil {
		panic(err) // our own types
	}
	return string(text)
}

// indented returns the entry of a JSON file.
func indented(section string, l launch) string {
	var b bytes.Buffer
	text := compact(map[string]any{section: map[string]any{"gateway": l}})
	if err := json.Indent(&b, []byte(text), "", "  "); err != nil {
		panic(err) // it is JSON
	}
	return b.String()
}

// toml returns the entry of a TOML file. Its strings are JSON's.
func (l launch) toml() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[mcp_servers.gateway]\ncommand = %s\nargs = %s\n", compact(l.Command), compact(l.Args))
	pairs := make([]string, 0, len(l.Env))
	for _, name := range slices.Sorted(maps.Keys(l.Env)) {
		pairs = append(pairs, name+" = "+compact(l.Env[name]))
	}
	// The agent's socket is not among what it passes on.
	fmt.Fprintf(&b, "env = { %s }\nenv_vars = [\"SSH_AUTH_SOCK\"]\ntool_timeout_sec = 60", strings.Join(pairs, ", "))
	return b.String()
}
