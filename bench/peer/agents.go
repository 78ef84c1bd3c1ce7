package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	gossh "golang.org/x/crypto/ssh"

	"gateway/bench/lab"
)

// A server is a server of the Model Context Protocol on stdio, and which calls
// run a command.
type server struct {
	how     string
	pack    string // of npm; empty for ours
	command func(*lab.Site) (*exec.Cmd, error)
	open    func(*lab.Site) call // a session, or a connection; nil: it needs none
	run     func(session, command string) call
}

type call struct {
	tool string
	args map[string]any
}

type args = map[string]any

var agents = []Peer{
	mcpPeer("npm ssh-mcp, session", server{
		how: "tool `run-command` in a session", pack: "ssh-mcp", command: sshMCP,
		open: func(*lab.Site) call { return call{"open-session", args{"name": "work", "type": "interactive"}} },
		run: func(_, command string) call {
			return call{"run-command", args{"session": "work", "command": command}}
		},
	}),
	mcpPeer("npm ssh-mcp, one-shot", server{
		how: "tool `run-command`", pack: "ssh-mcp", command: sshMCP,
		run: func(_, command string) call { return call{"run-command", args{"command": command}} },
	}),
	mcpPeer("npm mcp-ssh-manager, session", server{
		how: "tool `ssh_session_send`", pack: "mcp-ssh-manager", command: sshManager,
		open: func(*lab.Site) call { return call{"ssh_session_start", args{"server": "web1"}} },
		run: func(session, command string) call {
			return call{"ssh_session_send", args{"session": session, "command": command}}
		},
	}),
	mcpPeer("npm mcp-ssh-manager, one-shot", server{
		how: "tool `ssh_execute`", pack: "mcp-ssh-manager", command: sshManager,
		run: func(_, command string) call {
			return call{"ssh_execute", args{"server": "web1", "command": command}}
		},
	}),
	mcpPeer("npm ssh-mcp-server-secured", server{
		how: "tool `ssh_execute` on a connection", pack: securedPack, command: secured,
		open: func(s *lab.Site) call {
			return call{"ssh_connect", args{
				"host": s.First().Addr, "port": s.First().Port, "username": s.Server.User, "privateKey": s.Server.KeyFile,
				"connectionId": "web1", "deviceType": "linux",
			}}
		},
		run: func(_, command string) call {
			return call{"ssh_execute", args{"connectionId": "web1", "command": command, "timeout": 55_000}}
		},
	}),
}

var ourServer = server{
	how:     "tool `run` in a session, over stdio",
	command: func(s *lab.Site) (*exec.Cmd, error) { return run(s, "mcp"), nil },
	open: func(s *lab.Site) call {
		return call{"session_open", args{"host": s.First().Name, "name": "mcp"}}
	},
	run: func(session, command string) call {
		return call{"run", args{"session": session, "command": command}}
	},
}

func mcpPeer(name string, srv server) Peer {
	return Peer{
		Name: name, How: srv.how, Ours: srv.pack == "",
		Version: func(l *lab.Lab) string {
			if srv.pack == "" {
				return program(l)
			}
			var pack struct{ Version string }
			text, err := os.ReadFile(filepath.Join(l.Modules, "node_modules", srv.pack, "package.json"))
			if err != nil || json.Unmarshal(text, &pack) != nil {
				return "unknown"
			}
			return srv.pack + " " + pack.Version
		},
		Missing: func(l *lab.Lab) string {
			if srv.pack == "" {
				return ""
			}
			if _, err := os.Stat(filepath.Join(l.Modules, "node_modules", srv.pack)); err != nil {
				return "not installed from npm"
			}
			return needs("node")(l)
		},
		Warm: func(ctx context.Context, s *lab.Site) (Shell, error) { return openAgent(ctx, s, srv) },
	}
}

// An agent is a client of such a server.
type agent struct {
	server  server
	client  *mcp.ClientSession
	session string
	after   func()
}

func openAgent(ctx context.Context, s *lab.Site, srv server) (Shell, error) {
	after := func() {}
	if srv.pack == "" {
		d, err := startDaemon(ctx, s)
		if err != nil {
			return nil, err
		}
		after = d.Close
	}
	cmd, err := srv.command(s)
	if err != nil {
		after()
		return nil, err
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := c.Connect(ctx, &mcp.CommandTransport{Command: cmd, TerminateDuration: time.Second}, nil)
	if err != nil {
		after()
		return nil, fmt.Errorf("it does not start: %w", err)
	}
	a := &agent{server: srv, client: session, after: after}
	if err := a.begin(ctx, s); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

var sessionID = regexp.MustCompile(`Session ID: (\S+)|"session": ?"([^"]+)"`)

func (a *agent) begin(ctx context.Context, s *lab.Site) error {
	if a.server.open == nil {
		return nil
	}
	text, err := a.call(ctx, a.server.open(s))
	if match := sessionID.FindStringSubmatch(text); match != nil {
		a.session = match[1] + match[2]
	}
	return err
}

// call returns the text of an answer. An answer that is an error is one here.
func (a *agent) call(ctx context.Context, c call) (string, error) {
	result, err := a.client.CallTool(ctx, &mcp.CallToolParams{Name: c.tool, Arguments: c.args})
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, part := range result.Content {
		if piece, ok := part.(*mcp.TextContent); ok {
			text.WriteString(piece.Text)
		}
	}
	if result.IsError {
		return "", errors.New(text.String())
	}
	return text.String(), nil
}

func (a *agent) Run(ctx context.Context, command string) (string, error) {
	return a.call(ctx, a.server.run(a.session, command))
}

func (a *agent) Close() {
	a.client.Close()
	a.after()
}

const securedPack = "@marian-craciunescu/ssh-mcp-server-secured"

func node(s *lab.Site, script string, args ...string) *exec.Cmd {
	return s.Command("node", append([]string{filepath.Join(s.Modules, "node_modules", script)}, args...)...)
}

// sshMCP starts the server with a profile that may do most without a person's
// consent.
func sshMCP(s *lab.Site) (*exec.Cmd, error) {
	file := s.Path("ssh-mcp.toml")
	err := os.WriteFile(file, fmt.Appendf(nil, `[defaults]
defaultProfile = "web1"
approvalMode = "auto"
commandMaxChars = 0

[[profiles]]
name = "web1"
host = %q
port = %d
user = %q
auth = "key"
keyRef = %q
role = "admin"
group = "dev"
approvalPolicy = "auto"
trustedHostKey = %q
`, s.First().Addr, s.First().Port, s.Server.User, s.Server.KeyFile, gossh.FingerprintSHA256(s.Server.HostKey)), 0o600)
	return node(s, "ssh-mcp/build/index.js", "--config="+file), err
}

func sshManager(s *lab.Site) (*exec.Cmd, error) {
	cmd := node(s, "mcp-ssh-manager/src/index.js")
	cmd.Env = append(cmd.Env, "SSH_SERVER_WEB1_HOST="+s.First().Addr, "SSH_SERVER_WEB1_PORT="+strconv.Itoa(s.First().Port),
		"SSH_SERVER_WEB1_USER="+s.Server.User, "SSH_SERVER_WEB1_KEYPATH="+s.Server.KeyFile)
	return cmd, nil
}

func secured(s *lab.Site) (*exec.Cmd, error) {
	cmd := node(s, securedPack+"/index.js")
	cmd.Env = append(cmd.Env, "SSH_FILTER_MODE=disabled", "SSH_AUDIT_DIR="+s.Home, "SSH_LOG_FILE="+s.Path("secured.log"))
	return cmd, nil
}
