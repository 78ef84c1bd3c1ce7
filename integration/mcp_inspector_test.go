//go:build npm

package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// inspector is the script of the official MCP inspector; see make mcp-inspector.
var inspector = os.Getenv("GATEWAY_INSPECTOR")

// An inspected server is called by the inspector: a process for each call, so
// the story's sessions have to outlive their clients.
type inspected struct {
	t      *testing.T
	h      *house
	server []string // how it is reached
}

// ask runs the inspector, and returns what it prints.
func (i inspected) ask(args ...string) []byte {
	i.t.Helper()
	cmd := exec.Command("node", append(append([]string{inspector, "--cli"}, i.server...), args...)...)
	cmd.Env = i.h.env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		i.t.Fatalf("inspector %q: %v\n%s%s", args, err, out, stderr.String())
	}
	return out
}

// call calls a tool with key=value pairs.
func (i inspected) call(tool string, pairs ...string) said {
	i.t.Helper()
	args := []string{"--method", "tools/call", "--tool-name", tool}
	for _, pair := range pairs {
		args = append(args, "--tool-arg", pair)
	}
	var result struct {
		Content []struct{ Text string }
		IsError bool
	}
	out := i.ask(args...)
	if err := json.Unmarshal(out, &result); err != nil || len(result.Content) == 0 {
		i.t.Fatalf("%s answers %q: %v", tool, out, err)
	}
	s := said{text: result.Content[0].Text, isError: result.IsError}
	if err := json.Unmarshal([]byte(s.text), &s); err != nil || s.isError {
		i.t.Fatalf("%s %q = %s, %v", tool, pairs, s.text, err)
	}
	i.t.Logf("%s %.70q: %s %.60q", tool, pairs, s.Verdict, s.Stdout)
	return s
}

func TestInspector(t *testing.T) {
	if inspector == "" {
		t.Fatal("where is the inspector? make mcp-inspector says it")
	}
	h := newHouse(t)
	h.write(t, ".config/gateway/hosts.yaml", aliases(t))
	h.serves(t)
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	url := h.overHTTP(t)
	for name, server := range map[string][]string{
		"stdio": {path, "mcp"},
		"http":  {url, "--transport", "http", "--header", "Authorization: Bearer " + tokenA},
	} {
		t.Run(name, func(t *testing.T) { inspect(inspected{t, h, server}) })
	}
}

func inspect(i inspected) {
	t := i.t
	tools := string(i.ask("--method", "tools/list"))
	for _, tool := range []string{"hosts", "exec", "session_open", "run", "send", "wait", "output", "interrupt", "sessions", "file"} {
		if !strings.Contains(tools, `"name": "`+tool+`"`) {
			t.Errorf("the inspector lists no %s", tool)
		}
	}
	if hosts := i.call("hosts").Hosts; len(hosts) != 1 || hosts[0].Name != "web1" {
		t.Errorf("hosts = %+v", hosts)
	}
	i.call("session_open", "host=web1", "name=work", "keep=true")
	i.call("run", "session=work", "command=mkdir -p a; cd a; export TOKEN=t")
	i.call("run", "session=work", "command=echo $TOKEN; basename $PWD").exited(t, 0, "t\na\n")
	build := i.call("run", "session=work", "command=for i in 1 2 3 4 5 6 7 8 9; do echo step $i; sleep 10; done", "wait_ms=0")
	for range 2 {
		if s := i.call("wait", "id="+build.ID, "until=exit", "wait_ms=25000"); s.Verdict != "running" {
			t.Errorf("the build = %s", s.text)
		}
	}
	last := i.call("wait", "id="+build.ID, "until=exit", "wait_ms=50000")
	last.exited(t, 0, last.Stdout)
	if !strings.HasSuffix(last.Stdout, "step 9\n") {
		t.Errorf("the build = %s", last.text)
	}
	if asks := i.call("run", "session=work", "command=read -p 'go on? ' x; echo got $x", "tty=true"); asks.Verdict != "waiting_input" {
		t.Errorf("a prompt = %s", asks.text)
	}
	if s := i.call("send", "session=work", "text=yes\n"); s.Verdict != "exited" || !strings.HasSuffix(s.Stdout, "got yes\n") {
		t.Errorf("send = %s", s.text)
	}
	hung := i.call("run", "session=work", "command=sleep 600", "wait_ms=100")
	if s := i.call("interrupt", "id="+hung.ID); s.Verdict != "interrupted" {
		t.Errorf("interrupt = %s", s.text)
	}
	big := i.call("run", "session=work", "command=seq 1 740000")
	pages, cursor := 0, big.Cursor-5068895
	for range 3 {
		page := i.call("output", "id="+big.ID, fmt.Sprint("cursor=", cursor))
		if page.Cursor <= cursor {
			t.Fatalf("page = %s", page.text)
		}
		pages, cursor = pages+1, page.Cursor
	}
	if found := i.call("output", "id="+big.ID, "grep=^739999$"); found.Matches != 1 {
		t.Errorf("grep = %s", found.text)
	}
	name := t.TempDir() + "/note"
	i.call("file", "host=web1", "op=write", "path="+name, "content=from an agent")
	if f := i.call("file", "host=web1", "op=read", "path="+name, "limit=4"); !strings.Contains(f.text, `"content":"from"`) {
		t.Errorf("file = %s", f.text)
	}
	i.call("sessions", "action=close", "session=work")
}
