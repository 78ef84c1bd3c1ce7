package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/internal/socket"
)

// localAgent is an agent that may use this machine.
func localAgent(t *testing.T, h *house) *agent {
	t.Helper()
	h.serves(t)
	a, _ := h.stdio(t, eras[0], "--hosts", "localhost")
	return a
}

func TestAgentBadInput(t *testing.T) {
	t.Parallel()
	a := localAgent(t, newHouse(t))
	a.refused("inventory.unknown_host", "did you mean localhost?", "exec", args{"host": "locahost", "command": "true"})
	a.refused("session.not_found", "session_open", "run", args{"session": "work", "command": "true"})
	a.do("session_open", args{"host": "localhost", "name": "work"})
	a.refused("session.not_found", "did you mean work?", "run", args{"session": "wrk", "command": "true"})
	a.refused("usage", "work", "session_open", args{"host": "localhost", "name": "work"})
	a.refused("usage", "session name", "session_open", args{"host": "localhost", "name": "../x"})
	a.refused("usage", "s-1a2b3c4d5e.1", "wait", args{"id": "work", "until": "exit"})
	a.refused("session.not_found", "", "wait", args{"id": "s-0000000000.1", "until": "exit"})
	a.refused("usage", "nothing has run", "wait", args{"session": "work", "until": "exit"})

	// What does not fit.
	a.refused("usage", `no argument "hots"`, "exec", args{"hots": "localhost", "command": "true"})
	a.refused("usage", "did you mean host?", "exec", args{"host": "localhost", "hosts": "x", "command": "true"})
	for _, never := range []string{"identity", "known_hosts", "host_key", "accept_new", "password", "config", "user", "sudo", "timeout"} {
		a.refused("usage", "no argument", "exec", args{"host": "localhost", "command": "true", never: "x"})
	}
	a.refused("usage", "host", "exec", args{"command": "true"})
	a.refused("usage", "timeout_ms", "exec", args{"host": "localhost", "command": "true", "timeout_ms": 100_000_000})
	a.refused("usage", "timeout_ms", "exec", args{"host": "localhost", "command": "true", "timeout_ms": "10"})
	a.refused("usage", "env", "exec", args{"host": "localhost", "command": "true", "env": []string{"A=B"}})
	a.refused("usage", "either session or id", "output", args{})
	a.refused("usage", "either session or id", "output", args{"session": "work", "id": "s-1.1"})
	a.refused("usage", "until", "wait", args{"session": "work", "until": "done"})
	a.refused("usage", "", "exec", "host")

	// What can't reach a host as it is.
	a.refused("usage", "at most", "exec", args{"host": "localhost", "command": "echo " + strings.Repeat("x", 10<<20)})
	a.refused("usage", "surrogate", "exec", json.RawMessage(`{"host": "localhost", "command": "echo \ud800"}`))
	a.refused("usage", "NUL", "exec", args{"host": "localhost", "command": "echo \x00"})
	a.do("exec", args{"host": "localhost", "command": "echo '\ufffd'"}).exited(t, 0, "\ufffd\n")

	// A session that is busy, and one that is over.
	long := a.do("run", args{"session": "work", "command": "echo begun; sleep 600", "wait_ms": 300})
	busy := a.refused("session.busy", "echo begun; sleep 600", "run", args{"session": "work", "command": "echo never"})
	if busy.Running == nil || !strings.Contains(busy.text, long.ID) {
		t.Errorf("busy = %s", busy.text)
	}
	if stopped := a.do("interrupt", args{"id": long.ID}); stopped.ID != long.ID || stopped.Verdict != "interrupted" {
		t.Errorf("interrupt = %s", stopped.text)
	}
	next := a.do("run", args{"session": "work", "command": "sleep 600", "wait_ms": 0})
	a.refused("usage", "is over", "interrupt", args{"id": long.ID})
	a.refused("usage", "is over", "send", args{"id": long.ID, "text": "x\n"})
	if old := a.do("wait", args{"id": long.ID, "until": "exit"}); old.ID != long.ID || old.Verdict != "interrupted" {
		t.Errorf("wait for a command that is over = %s", old.text)
	}
	a.refused("usage", "ends at cursor 6", "output", args{"id": long.ID, "cursor": 7})
	if old := a.do("output", args{"id": long.ID}); old.Text != "begun\n" {
		t.Errorf("output of a command that is over = %s", old.text)
	}
	a.do("interrupt", args{"id": next.ID})
	if last := a.do("run", args{"session": "work", "command": "exit 7"}); !strings.Contains(last.Next, "session_open") {
		t.Errorf("exit = %s", last.text)
	}
	a.refused("session.closed", "status 7", "run", args{"session": "work", "command": "echo never"})
	if old := a.do("output", args{"session": "work"}); old.Text != "begun\n" {
		t.Errorf("the output of a closed session = %s", old.text)
	}
	a.refused("cmd.cwd", "", "exec", args{"host": "localhost", "command": "true", "cwd": "/nonexistent"})
}

// What an answer holds is what a person would have seen.
func TestAgentSeesText(t *testing.T) {
	t.Parallel()
	a := localAgent(t, newHouse(t))
	a.do("session_open", args{"host": "localhost", "name": "s"})
	run := func(command string, more ...any) said {
		t.Helper()
		arguments := args{"session": "s", "command": command}
		for i := 0; i < len(more); i += 2 {
			arguments[more[i].(string)] = more[i+1]
		}
		return a.do("run", arguments)
	}
	run(`printf '\033[1;31mred\033[0m\n'; for i in 1 20 100; do printf '\r%d%%' $i; done; echo; printf 'a\tb\r\n'`).exited(t, 0, "red\n100%\na\tb\n")
	if s := run(`printf 'a\377b\n'`); s.Stdout != "a\ufffdb\n" || len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "UTF-8") {
		t.Errorf("invalid UTF-8 = %s", s.text)
	}
	if s := run(`echo out; echo err >&2; exit_() { return 9; }; exit_`); s.Stdout != "out\n" || s.Stderr != "err\n" || *s.ExitCode != 9 {
		t.Errorf("streams = %s", s.text)
	}
	if s := run("true"); len(s.text) > 400 || strings.Contains(s.text, "null") || !strings.Contains(s.text, `"stdout":""`) {
		t.Errorf("true = %s", s.text)
	}
	run("cat", "stdin", "given\n").exited(t, 0, "given\n")
	run("cat").exited(t, 0, "")
	run("echo $V; pwd", "env", args{"V": "v"}, "cwd", "/usr").exited(t, 0, "v\n/usr\n")
	run("echo ${V-none}").exited(t, 0, "none\n")
	if s := run("seq 1 1000", "max_output", 300); !s.Truncated || len(s.Stdout) > 600 || !strings.HasPrefix(s.Stdout, "1\n2\n") || !strings.HasSuffix(s.Stdout, "\n1000\n") {
		t.Errorf("max_output = %s", s.text)
	}
	// Ten megabytes of a progress bar are one line.
	if s := run(`i=0; while [ $i -lt 20000 ]; do printf '\rdone: %d' $i; i=$((i+1)); done; echo`); s.Truncated || s.Stdout != "done: 19999\n" {
		t.Errorf("a progress bar = %.300s", s.text)
	}
	// A character that comes in two halves, an answer between them.
	s := run(`printf 'a\303'; sleep 0.4; printf '\244\033['; sleep 0.4; printf '31mb\n'`, "wait_ms", 200)
	whole := s.Stdout
	for s.Verdict == "running" {
		s = a.do("send", args{"id": s.ID, "wait_ms": 300})
		whole += s.Stdout
	}
	if whole != "aäb\n" {
		t.Errorf("in pieces = %q", whole)
	}
	late := run("sleep 600", "timeout_ms", 300)
	if late.Verdict != "timed_out" || late.Error.Code != "cmd.timeout" {
		t.Errorf("timeout = %s", late.text)
	}
	// By its session it has the same result as by its id.
	byID := a.do("wait", args{"id": late.ID, "until": "exit"})
	if bySession := a.do("wait", args{"session": "s", "until": "exit"}); bySession.text != byID.text || byID.Error.Code != "cmd.timeout" || byID.Cwd == "" {
		t.Errorf("by session: %s\nby id: %s", bySession.text, byID.text)
	}
	if s := run("true", "wait_ms", 90_000); len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "55000") {
		t.Errorf("wait_ms above the limit = %s", s.text)
	}
	if s := run("sleep 600", "wait_ms", 0); s.Verdict != "running" || !strings.Contains(s.Next, "120 s") {
		t.Errorf("wait_ms 0 = %s", s.text)
	}
	a.do("interrupt", args{"session": "s"})
}

// A password is a person's: the agent is told whose, may only leave, and never
// sees it.
func TestAgentGivesNoPassword(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a := localAgent(t, h)
	a.do("session_open", args{"host": "localhost", "name": "s"})
	asks := a.do("run", args{"session": "s", "command": `read -rs -p 'Password: ' p </dev/tty; echo "got $p"`})
	if asks.Verdict != "waiting_input" || asks.Prompt.Kind != "password" || !strings.Contains(asks.Next, "gateway session answer") {
		t.Errorf("a password = %s", asks.text)
	}
	a.refused("cmd.needs_input", "gateway session answer", "send", args{"session": "s", "text": "hunter2\n"})
	a.refused("cmd.needs_input", "gateway session answer", "send", args{"session": "s", "keys": []string{"h", "enter"}})
	a.refused("usage", "no key", "send", args{"session": "s", "keys": []string{"ctrl-cc"}})
	if left := a.do("send", args{"session": "s", "keys": []string{"Ctrl+C"}}); left.Verdict == "waiting_input" {
		t.Errorf("ctrl-c = %s", left.text)
	}

	asks = a.do("run", args{"session": "s", "command": `read -rs -p 'Password: ' p </dev/tty; echo "got $p"`})
	line := regexp.MustCompile(`gateway session answer [\w.-]+`).FindString(asks.Next)
	if o := h.feed(t, "hunter2\n", strings.Fields(line)[1:]...); o.status != 0 {
		t.Errorf("%s: %+v", line, o)
	}
	if s := a.do("wait", args{"id": asks.ID, "until": "exit"}); s.Verdict != "exited" || !strings.Contains(s.Stdout, "got ****") || strings.Contains(s.text, "hunter2") {
		t.Errorf("after the answer = %s", s.text)
	}
	if o := a.do("output", args{"session": "s"}); strings.Contains(o.text, "hunter2") {
		t.Errorf("the output has the password: %s", o.text)
	}
	if o := h.gateway(t, "session", "list"); o.status != 0 || !strings.Contains(o.stdout, "localhost") {
		t.Errorf("session list: %+v", o)
	}
}

// A call that is cancelled ends what it ran; a wait that is cancelled ends alone.
func TestAgentCancels(t *testing.T) {
	h := newHouse(t)
	a := localAgent(t, h)
	a.do("session_open", args{"host": "localhost", "name": "s"})
	c := client.At(h.socket, "")
	defer c.Release()
	state := func(want api.State) func() bool {
		return func() bool {
			s, err := c.Session(t.Context(), "s")
			return err == nil && s.State == want
		}
	}
	cancelled := func(tool string, arguments args) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { // ends with the condition
			eventually(t, "the command runs", state(api.Running))
			cancel()
		}()
		if _, err := a.call(ctx, tool, arguments); !errors.Is(err, context.Canceled) {
			t.Errorf("%s = %v, want %v", tool, err, context.Canceled)
		}
	}
	mark := tag(t)
	cancelled("run", args{"session": "s", "command": mark + " sleep 600", "wait_ms": 50_000})
	gone(t, mark)
	eventually(t, "the session is free", state(api.Idle))

	running := a.do("run", args{"session": "s", "command": mark + " sleep 600", "wait_ms": 0})
	cancelled("wait", args{"id": running.ID, "until": "exit", "wait_ms": 50_000})
	cancelled("send", args{"id": running.ID, "wait_ms": 50_000})
	if s := a.do("wait", args{"id": running.ID, "until": "exit", "wait_ms": 100}); s.Verdict != "running" {
		t.Errorf("the command whose waits were cancelled = %s", s.text)
	}
	a.do("interrupt", args{"session": "s"})
}

// short serves a daemon in this process that waits for a lost client for a
// moment only.
func (h *house) short(t *testing.T, grace time.Duration) *client.Client {
	t.Helper()
	l, err := socket.Listen(t.Context(), h.socket, "")
	if err != nil {
		t.Fatal(err)
	}
	d, err := daemon.New(daemon.Config{StateDir: filepath.Join(h.home, "state"), Grace: grace})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- daemon.Serve(ctx, l, d.Handler(), daemon.Life{Version: "test", Log: slog.New(slog.DiscardHandler), Sessions: d.Sessions, Drain: d.Drain})
	}()
	c := client.At(h.socket, "")
	t.Cleanup(func() {
		c.Release()
		stop()
		<-ended
		l.Release()
	})
	return c
}

// An agent that is killed leaves nothing but what it asked to keep.
func TestAgentIsKilled(t *testing.T) {
	h := newHouse(t)
	c := h.short(t, 200*time.Millisecond)
	a, cmd := h.stdio(t, eras[0], "--hosts", "localhost")
	mark := tag(t)
	a.do("session_open", args{"host": "localhost", "name": "kept", "keep": true})
	a.do("session_open", args{"host": "localhost", "name": "gone"})
	a.do("run", args{"session": "gone", "command": mark + " sleep 600", "wait_ms": 0})
	a.do("exec", args{"host": "localhost", "command": mark + " sleep 600", "wait_ms": 0})
	must(t, cmd.Process.Kill())
	gone(t, mark)
	eventually(t, "only the session to keep is there", func() bool {
		list, err := c.Sessions(t.Context(), false)
		return err == nil && len(list) == 1 && list[0].Name == "kept"
	})
	again, _ := h.stdio(t, eras[0], "--hosts", "localhost")
	again.do("run", args{"session": "kept", "command": "echo here"}).exited(t, 0, "here\n")
}

// An agent that is started again goes on in the sessions of before: they close with
// it then.
func TestAgentGoesOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := h.short(t, 200*time.Millisecond)
	a, cmd := h.stdio(t, eras[0], "--hosts", "localhost")
	a.do("session_open", args{"host": "localhost", "name": "work"})
	a.do("session_open", args{"host": "localhost", "name": "gone"})
	again, second := h.stdio(t, eras[0], "--hosts", "localhost")
	mark := tag(t)
	begun := again.do("run", args{"session": "work", "command": mark + " sleep 600", "wait_ms": 0})
	open := func() (names []string) {
		list, err := c.Sessions(t.Context(), false)
		for _, s := range list {
			names = append(names, s.Name)
		}
		return append(names, fmt.Sprint(err))
	}
	must(t, cmd.Process.Kill())
	eventually(t, "what nobody uses is gone", func() bool { return !slices.Contains(open(), "gone") })
	if s := again.do("wait", args{"id": begun.ID, "until": "exit", "wait_ms": 500}); s.Verdict != "running" {
		t.Errorf("what the other agent runs = %s", s.text)
	}
	must(t, second.Process.Kill())
	gone(t, mark)
	eventually(t, "nothing is left", func() bool { return len(open()) == 1 })
}

// The agent's sessions are a person's to see and to use.
func TestPersonSeesAgent(t *testing.T) {
	h := newHouse(t)
	a := localAgent(t, h)
	a.do("session_open", args{"host": "localhost", "name": "shared"})
	a.do("run", args{"session": "shared", "command": "x=agent"})
	c := client.At(h.socket, "")
	defer c.Release()
	s, err := c.Session(t.Context(), "shared")
	if err != nil || s.Scope == "" {
		t.Fatalf("Session = %+v, %v", s, err)
	}
	ctx, detach := context.WithCancel(t.Context())
	defer detach()
	if _, err := c.Attach(ctx, "shared", "alice"); err != nil {
		t.Fatal(err)
	}
	a.refused("session.busy", "alice", "run", args{"session": "shared", "command": "true"})
	detach()
	eventually(t, "the agent may again", func() bool {
		said, err := a.call(t.Context(), "run", args{"session": "shared", "command": "echo $x"})
		return err == nil && said.Stdout == "agent\n"
	})
}

// Nothing but the protocol is on stdout, and a client that reads nothing holds
// nobody up.
func TestStdoutIsTheProtocol(t *testing.T) {
	h := newHouse(t)
	a := localAgent(t, h)
	cmd := h.lasting(t, "mcp", "--hosts", "localhost", "--log-level", "debug")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = out
	must(t, cmd.Start())
	out.Close()
	fmt.Fprintln(stdin, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	fmt.Fprintln(stdin, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	const calls = 30 // more than a pipe holds
	for i := range calls {
		fmt.Fprintf(stdin, `{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":{}}`+"\n", i+1)
	}
	a.do("exec", args{"host": "localhost", "command": "echo other"}).exited(t, 0, "other\n")
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for range calls + 1 {
		if !lines.Scan() {
			t.Fatalf("the answers end: %v", lines.Err())
		}
		var message struct {
			Version string `json:"jsonrpc"`
			Result  any
		}
		if err := json.Unmarshal(lines.Bytes(), &message); err != nil || message.Version != "2.0" || message.Result == nil {
			t.Fatalf("on stdout: %.200q, %v", lines.Text(), err)
		}
	}
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		var exit *exec.ExitError
		t.Errorf("the end of stdin: %v, %v", err, errors.As(err, &exit))
	}
	if lines.Scan() {
		t.Errorf("on stdout: %.200q", lines.Text())
	}
	stdout.Close()
}
