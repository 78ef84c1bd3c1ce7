package integration

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/internal/sshdtest"
)

// An agent is a client of gateway mcp.
type agent struct {
	t       *testing.T
	session *mcp.ClientSession
}

// said is what a tool answered; fields of several tools.
type said struct {
	ID, Session, Host, User, Shell, Cwd, Verdict, Stdout, Stderr, Terminal string
	Process, Next, Text, Line, Screen, Streams                             string
	ExitCode                                                               *int `json:"exit_code"`
	Cursor, Since                                                          int64
	Truncated                                                              bool
	Met                                                                    bool
	Matches                                                                int
	Total                                                                  int64 `json:"total_bytes"`
	Omitted                                                                int64 `json:"omitted_bytes"`
	Notes                                                                  []string
	Prompt                                                                 struct{ Text, Kind string }
	Error                                                                  struct{ Code, Message, Hint string }
	Hosts                                                                  []struct{ Name, Transport string }
	Sessions                                                               []struct{ Session, ID, State, Running string }
	Running                                                                json.RawMessage
	isError                                                                bool
	text                                                                   string
}

// aliases is an inventory with an alias of a real server.
func aliases(t *testing.T) string {
	t.Helper()
	return "hosts:\n  web1: " + entry(sshdtest.Start(t, sshdtest.Options{}), "") + "\n"
}

// stdio starts gateway mcp and connects to it in one of the protocol's eras.
func (h *house) stdio(t *testing.T, protocol string, args ...string) (*agent, *exec.Cmd) {
	t.Helper()
	cmd := h.lasting(t, append([]string{"mcp"}, args...)...)
	return connect(t, &mcp.CommandTransport{Command: cmd}, protocol), cmd
}

// lasting is a command that may take as long as it wants.
func (h *house) lasting(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = h.env
	return cmd
}

// serves starts the daemon in the background.
func (h *house) serves(t *testing.T) {
	t.Helper()
	if o := h.gateway(t, "serve"); o.status != 0 {
		t.Fatalf("serve: %+v", o)
	}
}

func connect(t *testing.T, transport mcp.Transport, protocol string) *agent {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return &agent{t, session}
}

type args = map[string]any

// call calls a tool.
func (a *agent) call(ctx context.Context, tool string, arguments any) (said, error) {
	a.t.Helper()
	result, err := a.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return said{}, err
	}
	var s said
	s.text = result.Content[0].(*mcp.TextContent).Text
	s.isError = result.IsError
	if err := json.Unmarshal([]byte(s.text), &s); err != nil {
		a.t.Fatalf("%s answers %q: %v", tool, s.text, err)
	}
	return s, nil
}

// do wants a call to be possible.
func (a *agent) do(tool string, arguments args) said {
	a.t.Helper()
	s, err := a.call(a.t.Context(), tool, arguments)
	if err != nil || s.isError {
		a.t.Fatalf("%s %v = %s, %v", tool, arguments, s.text, err)
	}
	return s
}

// refused wants an error with a code, and words in it.
func (a *agent) refused(code, words, tool string, arguments any) said {
	a.t.Helper()
	s, err := a.call(a.t.Context(), tool, arguments)
	if err != nil || !s.isError || s.Error.Code != code || !strings.Contains(s.text+s.Error.Message, words) {
		a.t.Errorf("%s = %.2000s, %v, want %s with %q", tool, s.text, err, code, words)
	}
	return s
}

// exited wants a command that has ended with a status and this output.
func (s said) exited(t *testing.T, status int, stdout string) {
	t.Helper()
	if s.Verdict != "exited" || s.ExitCode == nil || *s.ExitCode != status || s.Stdout != stdout {
		t.Errorf("the answer is %.2000s, want status %d and %q", s.text, status, stdout)
	}
}

// The eras of the protocol.
var eras = []string{"2025-06-18", "2026-07-28"}

func TestAgentOverStdio(t *testing.T) {
	t.Parallel()
	inventory := aliases(t)
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			h := newHouse(t)
			h.write(t, ".config/gateway/hosts.yaml", inventory)
			h.serves(t)
			a, _ := h.stdio(t, era)
			story(t, a)
		})
	}
}

// story is what an agent does in an hour.
func story(t *testing.T, a *agent) {
	t.Helper()
	if hosts := a.do("hosts", args{}).Hosts; len(hosts) != 1 || hosts[0].Name != "web1" || hosts[0].Transport != "ssh" {
		t.Errorf("hosts = %+v", hosts)
	}
	a.do("exec", args{"host": "web1", "command": "echo once; exit 3"}).exited(t, 3, "once\n")

	opened := a.do("session_open", args{"host": "web1", "name": "work"})
	if opened.Session != "work" || opened.Host != "web1" || opened.Shell == "" || opened.Cwd == "" {
		t.Errorf("session_open = %s", opened.text)
	}
	a.do("run", args{"session": "work", "command": "mkdir -p a/b; cd a/b; export TOKEN=t-1; plain=p; f() { echo $TOKEN-$plain; }"}).exited(t, 0, "")
	a.do("run", args{"session": "work", "command": "f; pwd"}).exited(t, 0, "t-1-p\n"+opened.Cwd+"/a/b\n")

	// A build that takes long, polled three times.
	dir := t.TempDir()
	a.do("exec", args{"host": "web1", "command": "mkfifo " + dir + "/1 " + dir + "/2"})
	build := a.do("run", args{"session": "work", "command": "echo compiling; read -r _ <1; echo linking; read -r _ <2; echo done", "wait_ms": 0, "cwd": dir})
	all := build.Stdout
	first := a.until("compiling", build)
	if all += first.Stdout; build.Verdict != "running" || build.Next == "" || first.Verdict != "running" {
		t.Errorf("the build = %s, then %s", build.text, first.text)
	}
	a.do("exec", args{"host": "web1", "command": "echo >" + dir + "/1"})
	second := a.do("wait", args{"id": build.ID, "until": "match", "match": "linking", "wait_ms": 5000})
	all += second.Stdout
	a.do("exec", args{"host": "web1", "command": "echo >" + dir + "/2"})
	third := a.do("send", args{"id": build.ID, "wait_ms": 5000})
	if all += third.Stdout; !second.Met || third.Verdict != "exited" || all != "compiling\nlinking\ndone\n" {
		t.Errorf("the polls gave %q: %s, %s", all, second.text, third.text)
	}
	a.do("wait", args{"id": build.ID, "until": "exit"}).exited(t, 0, "compiling\nlinking\ndone\n")

	// A prompt.
	asks := a.do("run", args{"session": "work", "command": "read -p 'go on? ' x; echo \"got $x\"", "tty": true})
	if asks.Verdict != "waiting_input" || asks.Prompt.Text != "go on? " || asks.Streams != "terminal" || !strings.Contains(asks.Next, "send") {
		t.Errorf("a prompt = %s", asks.text)
	}
	a.do("send", args{"session": "work", "text": "yes\n"}).exited(t, 0, "got yes\n")

	// A program that hangs.
	hung := a.do("run", args{"session": "work", "command": "echo up; sleep 600", "wait_ms": 0})
	a.until("up", hung)
	if stopped := a.do("interrupt", args{"session": "work"}); stopped.Verdict != "interrupted" || !strings.Contains(stopped.Process, "state") {
		t.Errorf("interrupt = %s", stopped.text)
	}

	// Much output.
	big := a.do("run", args{"session": "work", "command": "seq 1 150000"})
	if !big.Truncated || len(big.text) > 40<<10 || !strings.Contains(big.Stdout, "left out") || !strings.HasSuffix(big.Stdout, "150000\n") {
		t.Errorf("1 MB of output = %.300s ... (%d bytes)", big.text, len(big.text))
	}
	total := paged(t, a, big.ID)
	if want := int64(938895); total != want {
		t.Errorf("paged %d bytes, want %d", total, want)
	}
	if found := a.do("output", args{"id": big.ID, "grep": "^14999[89]$"}); found.Matches != 2 || !strings.Contains(found.Text, ":149999\n") {
		t.Errorf("grep = %s", found.text)
	}
	a.do("run", args{"session": "work", "command": "f"}).exited(t, 0, "t-1-p\n")
	if list := a.do("sessions", args{"action": "list"}).Sessions; len(list) != 1 || list[0].Session != "work" || list[0].State != "idle" {
		t.Errorf("sessions = %+v", list)
	}
	if closed := a.do("sessions", args{"action": "close", "session": "work"}); !strings.Contains(closed.text, `"closed"`) {
		t.Errorf("close = %s", closed.text)
	}
}

// until waits for a line that the answer may have already.
func (a *agent) until(line string, answer said) said {
	a.t.Helper()
	if strings.Contains(answer.Stdout, line) {
		return said{Verdict: answer.Verdict}
	}
	return a.do("wait", args{"id": answer.ID, "until": "match", "match": line})
}

// paged reads the whole output of a command, and counts what it has.
func paged(t *testing.T, a *agent, id string) int64 {
	t.Helper()
	var total, lines int64
	cursor := a.do("output", args{"id": id, "head": 1}).Cursor - 1
	for {
		page := a.do("output", args{"id": id, "cursor": cursor, "head": 256 << 10})
		if page.Cursor == cursor {
			t.Fatalf("the page at %d = %.300s", cursor, page.text)
		}
		text, _, _ := strings.Cut(page.Text, "[...")
		total += int64(len(text))
		lines += int64(strings.Count(text, "\n"))
		if cursor = page.Cursor; page.Omitted == 0 {
			break
		}
	}
	if lines != 150000 {
		t.Errorf("paged %d lines", lines)
	}
	return total
}
