//go:build npm

package compare

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	gossh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"gateway/internal/sshdtest"
)

// A machine is where the commands run, as a person would describe it to a server.
type machine struct {
	server *sshdtest.Server
	port   int             // of the server, or of a proxy before it
	key    gossh.PublicKey // that it is known by
	home   string          // of the server for agents
}

// write puts a file into the home, for its owner only.
func (m machine) write(t testing.TB, name, text string) string {
	t.Helper()
	file := filepath.Join(m.home, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// An ask is a call of a tool.
type ask struct {
	tool string
	args map[string]any
}

type args = map[string]any

// A reading is what an answer says.
type reading struct {
	text           string // all of it
	stdout, stderr string
	exit           *int
	id             string // of a session or a command
	running, over  bool
}

// A peer is a server for agents, and how its own documentation says that each
// thing is done. What is nil it has no tool for.
type peer struct {
	name string // of its package
	// command starts it on stdio. The environment is the caller's to complete.
	command func(t testing.TB, m machine) *exec.Cmd
	// setup comes before anything else.
	setup func(m machine) []ask
	// once runs a command that needs no session; open and run are a session.
	once func(command string) ask
	open func() ask
	run  func(session, command string) ask
	// begin starts a long command, and poll asks for what is new of it.
	begin func(session, command string) ask
	poll  func(id string) ask
	// interrupt ends what runs; without it a call is cancelled, as the protocol
	// has it.
	interrupt func(id string) ask
	// prompt runs a command that asks, and answer types to it.
	prompt func(session, command string) ask
	answer func(session, text string) ask
	// middle finds a line in what an answer has left out.
	middle func(id, line string) ask
	read   func(text string) reading
	// keys is what else it does about host keys.
	keys string
}

// modules is where npm has installed the others.
var modules = filepath.Join(os.Getenv("GATEWAY_PEERS"), "node_modules")

// version is what npm has installed.
func (p peer) version(t testing.TB) string {
	t.Helper()
	if p.name == "gateway" {
		return ""
	}
	var pack struct{ Version string }
	text, err := os.ReadFile(filepath.Join(modules, p.name, "package.json"))
	if err == nil {
		err = json.Unmarshal(text, &pack)
	}
	if err != nil {
		t.Fatal(err)
	}
	return pack.Version
}

func node(script string, args ...string) *exec.Cmd {
	return exec.Command("node", append([]string{filepath.Join(modules, script)}, args...)...)
}

var peers = []peer{ours, sshMCP, sshManager, secured}

var ours = peer{
	name: "gateway",
	command: func(t testing.TB, m machine) *exec.Cmd {
		known := m.write(t, ".ssh/known_hosts", m.knownLine())
		m.write(t, ".config/gateway/hosts.yaml", fmt.Sprintf("hosts:\n  web1: {addr: %s, port: %d, user: %s, identity: %s, known_hosts: %s, agent: false}\n",
			m.server.Host, m.port, m.server.User, m.server.KeyFile, known))
		if err := build(); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(binary, "mcp")
		cmd.Env = []string{"GATEWAY_SSH_CONFIG=off", "GATEWAY_SOCKET=" + filepath.Join(m.home, "run", "s")}
		return cmd
	},
	once: func(command string) ask { return ask{"exec", args{"host": "web1", "command": command}} },
	open: func() ask { return ask{"session_open", args{"host": "web1", "name": "work"}} },
	run: func(session, command string) ask {
		return ask{"run", args{"session": session, "command": command}}
	},
	begin: func(session, command string) ask {
		return ask{"run", args{"session": session, "command": command, "wait_ms": 2000}}
	},
	poll:      func(id string) ask { return ask{"wait", args{"id": id, "until": "exit", "wait_ms": 4000}} },
	interrupt: func(id string) ask { return ask{"interrupt", args{"id": id}} },
	prompt: func(session, command string) ask {
		return ask{"run", args{"session": session, "command": command, "tty": true}}
	},
	answer: func(session, text string) ask { return ask{"send", args{"session": session, "text": text + "\n"}} },
	middle: func(id, line string) ask { return ask{"output", args{"id": id, "grep": "^" + line + "$"}} },
	read: func(text string) reading {
		var a struct {
			ID, Session, Verdict, Stdout, Stderr, Text string
			ExitCode                                   *int `json:"exit_code"`
		}
		if json.Unmarshal([]byte(text), &a) != nil {
			return reading{}
		}
		r := reading{stdout: a.Stdout + a.Text, stderr: a.Stderr, exit: a.ExitCode, id: a.ID}
		if r.id == "" {
			r.id = a.Session
		}
		r.running = a.Verdict == "running" || a.Verdict == "waiting_input"
		r.over = a.Verdict != "" && !r.running
		return r
	},
}

// A profile of the role "admin" on a tier "dev" is the one that may do most
// without a person's consent.
var sshMCP = peer{
	name: "ssh-mcp",
	keys: ", where the key is pinned in its configuration; known_hosts is not read",
	command: func(t testing.TB, m machine) *exec.Cmd {
		config := m.write(t, ".config/ssh-mcp/config.toml", fmt.Sprintf(`[defaults]
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
`, m.server.Host, m.port, m.server.User, m.server.KeyFile, gossh.FingerprintSHA256(m.key)))
		return node("ssh-mcp/build/index.js", "--config="+config)
	},
	once: func(command string) ask { return ask{"run-command", args{"command": command}} },
	open: func() ask { return ask{"open-session", args{"name": "work", "type": "interactive"}} },
	run: func(_, command string) ask {
		return ask{"run-command", args{"session": "work", "command": command}}
	},
	begin: func(_, command string) ask {
		return ask{"open-session", args{"name": "long", "type": "background", "command": command}}
	},
	poll: func(string) ask { return ask{"read-session-output", args{"name": "long"}} },
	read: func(text string) reading {
		r := reading{stdout: text}
		if before, status, ok := lastCut(r.stdout, "[exit "); ok && strings.HasSuffix(status, "]") {
			r.stdout = strings.TrimSuffix(before, "\n\n")
			r.exit = number(strings.TrimSuffix(status, "]"))
		} else if strings.Contains(text, "[killed by SIG") {
			r.exit = new(128 + 9)
		} else {
			r.exit = new(0) // without a mark it was 0
		}
		r.stdout, r.stderr, _ = strings.Cut(r.stdout, "[stderr]\n")
		return r
	},
}

var sshManager = peer{
	name: "mcp-ssh-manager",
	keys: "; a tool of its own compares them when it is asked to",
	command: func(t testing.TB, m machine) *exec.Cmd {
		m.write(t, ".ssh/known_hosts", m.knownLine())
		cmd := node("mcp-ssh-manager/src/index.js")
		cmd.Dir = m.home
		cmd.Env = []string{
			"SSH_SERVER_WEB1_HOST=" + m.server.Host, "SSH_SERVER_WEB1_PORT=" + strconv.Itoa(m.port),
			"SSH_SERVER_WEB1_USER=" + m.server.User, "SSH_SERVER_WEB1_KEYPATH=" + m.server.KeyFile,
		}
		return cmd
	},
	once: func(command string) ask { return ask{"ssh_execute", args{"server": "web1", "command": command}} },
	open: func() ask { return ask{"ssh_session_start", args{"server": "web1"}} },
	run: func(session, command string) ask {
		return ask{"ssh_session_send", args{"session": session, "command": command}}
	},
	read: func(text string) reading {
		var a struct {
			Stdout, Stderr string
			Code           *int
		}
		if json.Unmarshal([]byte(text), &a) == nil {
			return reading{stdout: a.Stdout, stderr: a.Stderr, exit: a.Code}
		}
		if match := regexp.MustCompile(`Session ID: (\S+)`).FindStringSubmatch(text); match != nil {
			return reading{id: match[1]}
		}
		var r reading
		if _, out, ok := strings.Cut(text, "✅ Output:\n"); ok {
			r.stdout, r.exit = out, new(0)
		} else if _, out, ok := strings.Cut(text, "❌ Error:\n"); ok {
			r.stdout = out
		}
		r.stdout, _, _ = lastCut(r.stdout, "\n\n━")
		return r
	},
}

// Its sessions are meant for network devices, and all that it has.
var secured = peer{
	name: "@marian-craciunescu/ssh-mcp-server-secured",
	command: func(t testing.TB, m machine) *exec.Cmd {
		m.write(t, ".ssh/known_hosts", m.knownLine())
		cmd := node("@marian-craciunescu/ssh-mcp-server-secured/index.js")
		cmd.Dir = m.home
		cmd.Env = []string{
			"SSH_FILTER_MODE=disabled", "SSH_AUDIT_DIR=" + m.home, "SSH_LOG_FILE=" + filepath.Join(m.home, "log"),
		}
		return cmd
	},
	setup: func(m machine) []ask {
		connect := func(id, kind string) ask {
			return ask{"ssh_connect", args{
				"host": m.server.Host, "port": m.port, "username": m.server.User, "privateKey": m.server.KeyFile,
				"connectionId": id, "deviceType": kind,
			}}
		}
		return []ask{connect("web1", "linux"), connect("shell1", "network")}
	},
	once: func(command string) ask {
		return ask{"ssh_execute", args{"connectionId": "web1", "command": command, "timeout": 55_000}}
	},
	run:    func(_, command string) ask { return inShell(command) },
	begin:  func(_, command string) ask { return inShell(command) },
	prompt: func(_, command string) ask { return inShell(command) },
	answer: func(_, text string) ask { return inShell(text) },
	read: func(text string) reading {
		var r reading
		head, out, ok := strings.Cut(text, "Output:\n")
		if !ok {
			return r
		}
		if match := regexp.MustCompile(`Exit Code: (\d+)`).FindStringSubmatch(head); match != nil {
			r.exit = number(match[1])
		} else if strings.Contains(head, "Signal: SIGKILL") {
			r.exit = new(128 + 9)
		}
		r.stdout, r.stderr, _ = strings.Cut(out, "\nStderr:\n")
		return r
	},
}

func inShell(command string) ask {
	return ask{"ssh_execute", args{"connectionId": "shell1", "command": command}}
}

// knownLine is the machine's line of a known_hosts file.
func (m machine) knownLine() string {
	return knownhosts.Line([]string{fmt.Sprintf("[%s]:%d", m.server.Host, m.port)}, m.key) + "\n"
}

func number(text string) *int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil
	}
	return &n
}

// lastCut is [strings.Cut] at the last sep.
func lastCut(text, sep string) (before, after string, found bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}
