package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"gateway/daemon/api"
	"gateway/internal/sshdtest"
)

// A line is a server on stdio with a client that writes lines of its own.
type line struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (h *house) line(t *testing.T) *line {
	t.Helper()
	return lineTo(t, h.lasting(t, "mcp", "--hosts", "localhost"))
}

func lineTo(t *testing.T, server *exec.Cmd) *line {
	t.Helper()
	p := &line{t: t, cmd: server}
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	must(t, p.cmd.Start())
	t.Cleanup(func() {
		p.in.Close()
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait() // killed
	})
	p.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	p.hear()
	p.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return p
}

func (p *line) say(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// heard is a line of the server's.
type heard struct {
	ID     json.RawMessage
	Error  *struct{ Code int }
	Result *struct {
		IsError bool
		Content []struct{ Text string }
	}
	line string
}

func (p *line) hear() heard {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	h := heard{line: line}
	if err == nil {
		err = json.Unmarshal([]byte(line), &h)
	}
	if err != nil {
		p.t.Fatalf("the server says %.300q: %v", line, err)
	}
	return h
}

// A line that is no message is refused, and the next one is heard.
func TestAgentSpeaksBadly(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.serves(t)
	p := h.line(t)
	call := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"%s","arguments":%s}}`
	arguments := `{"host":"localhost","command":"%s"}`
	for name, c := range map[string]struct {
		line, id string
		code     int // of an error; 0: a tool's refusal
	}{
		"not JSON":                     {"hello", "null", -32700},
		"cut off":                      {`{"jsonrpc":"2.0","id":7,`, "null", -32700},
		"a NUL behind it":              {`{"jsonrpc":"2.0","id":7,"method":"ping"}` + "\x00", "null", -32700},
		"a number":                     {"42", "null", -32600},
		"an empty batch":               {"[]", "null", -32600},
		"a batch of numbers":           {"[1]", "null", -32600},
		"another version":              {`{"id":7,"method":"ping"}`, "7", -32600},
		"an id that is none":           {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, "null", -32600},
		"an id beyond 64 bits":         {`{"jsonrpc":"2.0","id":18446744073709551615,"method":"ping"}`, "18446744073709551615", -32600},
		"an id that no float is":       {`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, "9007199254740993", -32600},
		"an id that is a fraction":     {`{"jsonrpc":"2.0","id":7.5,"method":"ping"}`, "7.5", -32600},
		"too deep":                     {fmt.Sprintf(call, "exec", strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)), "null", -32700},
		"too long":                     {fmt.Sprintf(call, "exec", fmt.Sprintf(arguments, strings.Repeat("x", 20<<20))), "null", -32700},
		"an unknown tool":              {fmt.Sprintf(call, "ex\xffec", "{}"), "7", -32602},
		"an unknown method":            {`{"jsonrpc":"2.0","id":7,"method":"tools` + "\xff" + `"}`, "7", -32601},
		"a command that is no UTF-8":   {fmt.Sprintf(call, "exec", fmt.Sprintf(arguments, "echo \xff\xfe")), "7", 0},
		"an argument that is no UTF-8": {fmt.Sprintf(call, "exec", `{"ho`+"\xc3"+`st":"localhost"}`), "7", 0},
		"half a character":             {fmt.Sprintf(call, "exec", fmt.Sprintf(arguments, `echo \udc00`)), "7", 0},
		"10 MB":                        {fmt.Sprintf(call, "exec", fmt.Sprintf(arguments, strings.Repeat("x", 10<<20))), "7", 0},
	} {
		p.say(c.line)
		switch got := p.hear(); {
		case string(got.ID) != c.id:
			t.Errorf("%s: answered %.300s, want id %s", name, got.line, c.id)
		case c.code != 0 && (got.Error == nil || got.Error.Code != c.code):
			t.Errorf("%s: answered %.300s, want %d", name, got.line, c.code)
		case c.code == 0 && (got.Result == nil || !got.Result.IsError || !strings.Contains(got.line, "usage")):
			t.Errorf("%s: answered %.300s, want refused", name, got.line)
		}
	}
	// The messages of a batch are heard one by one, calls and notifications.
	p.say(`[{"jsonrpc":"2.0","id":8,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/roots/list_changed"},{"jsonrpc":"2.0","method":"notifications/roots/list_changed"},{"jsonrpc":"2.0","id":9,"method":"ping"}]`)
	if first, second := p.hear(), p.hear(); first.Result == nil || second.Result == nil || string(first.ID)+string(second.ID) != "89" && string(first.ID)+string(second.ID) != "98" {
		t.Errorf("a batch: answered %s and %s", first.line, second.line)
	}
	p.say("")
	p.say(fmt.Sprintf(call, "exec", fmt.Sprintf(arguments, `printf 'caf\\303 \\377'`)))
	if got := p.hear(); got.Result == nil || got.Result.IsError || !strings.Contains(got.line, "caf\ufffd \ufffd") || !strings.Contains(got.line, "UTF-8") {
		t.Errorf("output that is no UTF-8: %.600s", got.line)
	}
}

// A client that ends while it waits for commands has not cancelled them, nor has a
// server that is told to end: what it asked to keep goes on, the rest for a while.
func TestAgentEndsWhileItWaits(t *testing.T) {
	t.Parallel()
	for status, end := range map[int]func(*line) error{
		0:   func(p *line) error { return p.in.Close() },
		143: func(p *line) error { return p.cmd.Process.Signal(syscall.SIGTERM) },
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			h := newHouse(t)
			c := h.short(t, time.Minute)
			p := h.line(t)
			call := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":%s}}`
			p.say(fmt.Sprintf(call, 1, "session_open", `{"host":"localhost","name":"kept","keep":true}`))
			if got := p.hear(); got.Result == nil || got.Result.IsError {
				t.Fatalf("session_open: %s", got.line)
			}
			kept, brief := tag(t), tag(t)
			p.say(fmt.Sprintf(call, 2, "run", `{"session":"kept","command":"`+kept+` sleep 600","wait_ms":50000}`))
			p.say(fmt.Sprintf(call, 3, "exec", `{"host":"localhost","command":"`+brief+` sleep 600","wait_ms":50000}`))
			eventually(t, "the commands run", func() bool { return tagged(kept) > 0 && tagged(brief) > 0 })
			begun := time.Now()
			must(t, end(p))
			_ = p.cmd.Wait() // the status says it
			if took := time.Since(begun); p.cmd.ProcessState.ExitCode() != status || sshdtest.Over(t, took, 4*time.Second) {
				t.Errorf("the server ends with %v after %v", p.cmd.ProcessState, took)
			}
			list, err := c.Sessions(t.Context(), false)
			if err != nil || len(list) != 2 || list[0].State != api.Running || list[1].State != api.Running {
				t.Errorf("Sessions = %+v, %v, want two that run something", list, err)
			}
			for _, s := range list { // the daemon's end would wait for them
				if _, err := c.Close(t.Context(), s.ID); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// much has a session say more than an answer holds, and returns the command's id.
func much(a *agent) string {
	a.t.Helper()
	a.do("session_open", args{"host": "localhost", "name": "much"})
	return a.do("run", args{"session": "much", "command": "seq 1 100000"}).ID
}

// A client that asks for ever more and reads nothing is not read from after a
// while, holds nobody up, and hears of all its calls once it reads: it has asked for
// more than a server answers at once.
func TestAgentReadsNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	path, err := plainBinary()
	if err != nil {
		t.Fatal(err)
	}
	// With the race detector, a daemon that is asked for so much is too slow to greet others in time.
	serve := h.lasting(t, "serve")
	if serve.Path = path; serve.Run() != nil {
		t.Fatalf("serve: %v", serve.ProcessState)
	}
	a := localAgent(t, h)
	id := much(a)
	server := h.lasting(t, "mcp", "--hosts", "localhost")
	server.Path = path
	p := lineTo(t, server)
	const calls = 100
	said := make(chan error, 1)
	go func() {
		for i := range calls {
			if _, err := fmt.Fprintf(p.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"output","arguments":{"id":"%s","head":262144}}}`+"\n", i+1, id); err != nil {
				said <- err
				return
			}
		}
		said <- nil
	}()
	// It has taken what it takes when its memory grows no more.
	last := 0
	for deadline := time.Now().Add(time.Minute); ; {
		now := status(t, p.cmd.Process.Pid, "VmRSS") >> 10 // MiB
		if now == last && now > 40 {
			break
		}
		if last = now; time.Now().After(deadline) {
			t.Fatalf("the server still takes more after a minute: %d MiB", now)
		}
		time.Sleep(200 * time.Millisecond) // between two looks
	}
	t.Logf("%d MiB", last)
	if limit := 160; last > limit {
		t.Errorf("the server has %d MiB in memory, want at most %d", last, limit)
	}
	a.do("exec", args{"host": "localhost", "command": "echo other"}).exited(t, 0, "other\n")
	seen, answered := map[string]bool{}, 0
	for range calls {
		got := p.hear()
		switch {
		case got.Error != nil && got.Error.Code == -32000:
		case got.Result == nil || got.Result.IsError:
			t.Fatalf("answered %.300s", got.line)
		default:
			answered++
		}
		seen[string(got.ID)] = true
	}
	if err := <-said; err != nil || len(seen) != calls || answered < 32 {
		t.Errorf("%d answers for %d calls, and %d were done, %v", len(seen), calls, answered, err)
	}
}

// The same over HTTP: a hundred connections whose answers nobody reads.
func TestHTTPClientReadsNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.serves(t)
	url := h.overHTTP(t, "--hosts", "localhost")
	address := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/")
	a := agentAt(t, url, tokenA, eras[1])
	id := much(a)
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"output","arguments":{"id":"%s","head":262144}}}`, id)
	ask := func() net.Conn {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		for range 20 { // more than the sockets hold
			fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2025-06-18\r\nContent-Length: %d\r\n\r\n%s", address, tokenA, len(body), body)
		}
		return conn
	}
	for range 100 {
		ask()
	}
	for range 5 {
		a.do("exec", args{"host": "localhost", "command": "echo other"}).exited(t, 0, "other\n")
	}
	one := bufio.NewReader(ask())
	if status, err := one.ReadString('\n'); err != nil {
		t.Errorf("an answer that is read: %q, %v", status, err)
	} else {
		t.Log(status)
	}
}
