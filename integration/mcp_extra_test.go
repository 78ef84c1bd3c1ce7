package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Hosts and transcripts are resources too.
func TestAgentReadsResources(t *testing.T) {
	a := localAgent(t, newHouse(t))
	a.do("session_open", args{"host": "localhost", "name": "s"})
	id := a.do("run", args{"session": "s", "command": `printf '\033[1mbold\033[0m\n'`}).ID
	session, _, _ := strings.Cut(id, ".")
	want := map[string]string{
		"gateway://hosts/localhost":                     `"name":"localhost"`,
		"gateway://sessions/" + session + "/transcript": "bold\n",
	}
	list, err := a.session.ListResources(t.Context(), nil)
	if err != nil || len(list.Resources) != len(want) {
		t.Fatalf("ListResources = %+v, %v", list, err)
	}
	for _, r := range list.Resources {
		read, err := a.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: r.URI})
		if err != nil || want[r.URI] == "" || !strings.Contains(read.Contents[0].Text, want[r.URI]) {
			t.Errorf("%s = %+v, %v", r.URI, read, err)
		}
	}
	for _, uri := range []string{"gateway://hosts/web1", "gateway://sessions/s-0000000000/transcript", "file:///etc/passwd"} {
		if read, err := a.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s = %+v", uri, read)
		}
	}
}

// Who asks for it is told that a long call still waits.
func TestAgentIsToldOfProgress(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.serves(t)
	var told atomic.Pointer[string]
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { told.Store(&r.Params.Message) },
	})
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: h.lasting(t, "mcp", "--hosts", "localhost")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	params := &mcp.CallToolParams{Name: "exec", Arguments: args{"host": "localhost", "command": "echo begun; sleep 2.5"}}
	params.SetProgressToken("p")
	if r, err := session.CallTool(t.Context(), params); err != nil || r.IsError {
		t.Errorf("exec = %+v, %v", r, err)
	}
	if message := told.Load(); message == nil || *message != "running, 6 bytes of output" {
		t.Errorf("told %v", message)
	}
}

// A daemon that dies under a command leaves it open whether that has run: no
// answer that looks as if it has not, and the next daemon's list has its session.
func TestAgentLosesDaemon(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"run", "exec"} {
		t.Run(tool, func(t *testing.T) {
			h := newHouse(t)
			h.env = append(h.env, "CI=") // the server starts the next daemon
			served := h.serve(t)
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
				ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { _ = served.Process.Kill() }, // once is enough
			})
			session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: h.lasting(t, "mcp", "--hosts", "localhost")}, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { session.Close() })
			a := &agent{t, session}
			arguments := args{"host": "localhost", "command": tag(t) + " sleep 600", "wait_ms": 50_000}
			if tool == "run" {
				a.do("session_open", args{"host": "localhost", "name": "s"})
				delete(arguments, "host")
				arguments["session"] = "s"
			}
			params := &mcp.CallToolParams{Name: tool, Arguments: arguments}
			params.SetProgressToken("p")
			r, err := session.CallTool(t.Context(), params)
			_ = served.Wait() // killed
			if err != nil {
				t.Fatal(err)
			}
			var s said
			text := r.Content[0].(*mcp.TextContent).Text
			if err := json.Unmarshal([]byte(text), &s); err != nil || !r.IsError || s.Verdict != "unknown" || s.ID == "" || s.Error.Code != "daemon.unreachable" || s.Next == "" {
				t.Fatalf("%s = %s, %v, want unknown, with its id", tool, text, err)
			}
			if list := a.do("sessions", args{"action": "list"}).Sessions; len(list) != 1 || list[0].State != "lost" {
				t.Errorf("sessions = %+v, want the lost one", list)
			}
			a.refused("link.lost", `"verdict":"unknown"`, "wait", args{"id": s.ID, "until": "exit"})
			if tool == "run" {
				a.do("sessions", args{"action": "close", "session": "s"})
				if list := a.do("sessions", args{"action": "list"}).Sessions; len(list) != 0 {
					t.Errorf("sessions = %+v, want none behind the close", list)
				}
			}
		})
	}
}

// Who waits for a line of a command that has just ended is told of it, and of no
// line of the next command.
func TestMatchOfWhatHasEnded(t *testing.T) {
	h := newHouse(t)
	a := localAgent(t, h)
	a.do("session_open", args{"host": "localhost", "name": "s"})
	first := a.do("run", args{"session": "s", "command": "echo listening on :80"})
	a.do("run", args{"session": "s", "command": "echo later"})
	wants := func(match string, met bool) {
		t.Helper()
		if s := a.do("wait", args{"id": first.ID, "until": "match", "match": match}); s.Met != met || met && s.Line != "listening on :80" {
			t.Errorf("wait for %s = %s, want met %v", match, s.text, met)
		}
		status, line := 0, "listening on :80\n"
		if !met {
			status, line = 1, "exited 0: echo listening on :80\n"
		}
		h.gateway(t, "session", "wait", first.ID, "--until", "match="+match).want(t, status, line, "")
	}
	wants("on :[0-9]+", true)
	wants("later", false)
	a.do("sessions", args{"action": "close", "session": "s"})
	wants("on :[0-9]+", true)
	wants("later", false)
	h.gateway(t, "session", "wait", "s", "--until", "match=lat").want(t, 0, "later\n", "")
}

// Over HTTP a cancelled call ends its command as well.
func TestAgentCancelsOverHTTP(t *testing.T) {
	h := newHouse(t)
	h.serves(t)
	url := h.overHTTP(t, "--hosts", "localhost")
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			a := agentAt(t, url, tokenA, era)
			mark := tag(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() { // ends with the condition
				eventually(t, "the command runs", func() bool { return tagged(mark) > 0 })
				cancel()
			}()
			if s, err := a.call(ctx, "exec", args{"host": "localhost", "command": mark + " sleep 600", "wait_ms": 50_000}); err == nil {
				t.Errorf("exec = %s", s.text)
			}
			gone(t, mark)
		})
	}
}

// A name that is taken again means the session that has it now.
func TestAgentReopensName(t *testing.T) {
	a := localAgent(t, newHouse(t))
	for i, word := range []string{"first", "second"} {
		a.do("session_open", args{"host": "localhost", "name": "work"})
		a.do("run", args{"session": "work", "command": "echo ${x-none}; x=" + word}).exited(t, 0, "none\n")
		a.do("run", args{"session": "work", "command": "echo $x"}).exited(t, 0, word+"\n")
		if i == 0 {
			a.do("sessions", args{"action": "close", "session": "work"})
			a.refused("session.closed", "closed", "run", args{"session": "work", "command": "true"})
			continue
		}
		a.do("run", args{"session": "work", "command": "exit 5"})
		a.refused("session.closed", "status 5", "run", args{"session": "work", "command": "true"})
	}
}

// Who goes on with the cursor of an answer gets what that has not shown, and
// nothing twice.
func TestAgentReadsOn(t *testing.T) {
	a := localAgent(t, newHouse(t))
	a.do("session_open", args{"host": "localhost", "name": "s"})
	a.do("run", args{"session": "s", "command": "echo err >&2"})
	a.do("run", args{"session": "s", "command": "seq 10000"})
	const end = 4 + 48894 // err, and the numbers
	output := func(arguments args) said {
		t.Helper()
		arguments["session"] = "s"
		return a.do("output", arguments)
	}
	for _, c := range []struct {
		name      string
		arguments args
		cursor    int64
		total     int64
		more      bool
	}{
		{"a tail", args{"tail": 20}, end, end, true},
		{"a tail of a stream", args{"tail": 2, "stream": "stderr"}, end, 4, true},
		{"a tail that is all", args{"tail": 20, "stream": "stderr"}, end, 4, false},
		{"a head", args{"head": 20}, 20, end, true},
		{"a head that is all", args{"head": 4, "stream": "stderr"}, end, 4, false},
		{"all of a stream", args{"stream": "stderr"}, end, 4, false},
		{"a page", args{"cursor": 4}, 4 + 16<<10, end - 4, true},
		{"the last page", args{"cursor": end - 6}, end, 6, false},
		{"a page that is all of a stream", args{"cursor": 1, "stream": "stderr"}, end, 3, false},
		{"a search", args{"grep": "^9999"}, end, end, false},
		{"a search behind a cursor", args{"grep": "^9999", "cursor": 4}, end, end - 4, false},
		{"a search of a stream", args{"grep": "r", "stream": "stderr"}, end, 4, false},
	} {
		s := output(c.arguments)
		if s.Cursor != c.cursor || s.Total != c.total || (s.Next != "") != c.more {
			t.Errorf("%s = %.1000s, want cursor %d of %d, more: %v", c.name, s.text, c.cursor, c.total, c.more)
		}
	}

	tail := output(args{"tail": 20})
	a.do("run", args{"session": "s", "command": `printf 'half: \303' >&2; echo out`})
	if s := output(args{"cursor": tail.Cursor, "stream": "stdout"}); s.Text != "out\n" || s.Next != "" {
		t.Errorf("behind the tail = %s", s.text)
	}
	half := output(args{"cursor": tail.Cursor, "stream": "stderr"})
	a.do("run", args{"session": "s", "command": `printf '\244\n' >&2`})
	if s := output(args{"cursor": half.Cursor, "stream": "stderr"}); half.Text != "half: " || s.Text != "ä\n" {
		t.Errorf("half a character = %s, then %s", half.text, s.text)
	}
}

// What a cut leaves of a character is shown by whoever reads on, and by nobody else.
func TestAgentReadsOnBehindHalf(t *testing.T) {
	t.Parallel()
	a := localAgent(t, newHouse(t))
	a.do("session_open", args{"host": "localhost", "name": "s"})
	id := a.do("run", args{"session": "s", "command": `printf 'a\303\244b\n50%%\r'`}).ID
	head := a.do("output", args{"id": id, "head": 2})
	if !strings.HasPrefix(head.Text, "a[... 8 bytes left out") || head.Omitted != 8 {
		t.Errorf("a head = %s", head.text)
	}
	if s := a.do("output", args{"id": id, "cursor": head.Cursor}); s.Text != "äb\n50%" || s.Next != "" {
		t.Errorf("the rest = %s", s.text)
	}

	for limit := range 16 {
		char := []string{"ä", "😀"}[limit%2]
		long := strings.Repeat(char+"\n", 1000)
		s := a.do("run", args{"session": "s", "command": "yes " + char + " | head -n 1000", "max_output": 300 + limit/2})
		if len(s.Notes) > 0 {
			t.Errorf("with %d bytes: %s", 300+limit/2, s.text)
		}
		first, more, _ := strings.Cut(s.Stdout, "\n[")
		var left, cursor int
		if _, err := fmt.Sscanf(more, "... %d bytes left out; output with id "+s.ID+", stream stdout and cursor %d", &left, &cursor); err != nil {
			t.Fatalf("%v: %s", err, s.text)
		}
		rest := a.do("output", args{"id": s.ID, "cursor": cursor, "head": 600})
		text, _, _ := strings.Cut(rest.Text, "[...")
		if first += "\n"; !strings.HasPrefix(long, first+text) && !strings.HasPrefix(long, first[:len(first)-1]+text) {
			t.Errorf("%d bytes, then %q", len(first), text)
		}
		_, last, _ := strings.Cut(more, "...]\n")
		if all := len(first) + left + len(last); all != len(long) && all != len(long)+1 { // it may have ended without the newline
			t.Errorf("%d, %d left out and %d, of %d", len(first), left, len(last), len(long))
		}
	}
}

// What a program has written of a character so far waits for the rest, however often
// it is looked for, and in however many pieces it comes.
func TestAgentReadsHalf(t *testing.T) {
	a := localAgent(t, newHouse(t))
	a.do("session_open", args{"host": "localhost", "name": "s"})
	dir := t.TempDir()
	a.do("exec", args{"host": "localhost", "command": "mkfifo 1 2", "cwd": dir})
	id := a.do("run", args{"session": "s", "command": `printf 'a\360'; read -r _ <1; printf '\237'; read -r _ <2; printf '\230\200b\n'`, "cwd": dir, "wait_ms": 0}).ID
	cursor, text := int64(0), ""
	reads := func(so int64, want string) {
		t.Helper()
		var s said
		eventually(t, "it has written", func() bool {
			s = a.do("output", args{"id": id, "cursor": cursor})
			written := cursor + s.Total
			cursor, text = s.Cursor, text+s.Text
			return written == so
		})
		if text != want || s.Next != "" && s.Text == "" {
			t.Errorf("after %d bytes %q, want %q: %s", so, text, want, s.text)
		}
	}
	reads(2, "a")
	reads(2, "a")
	a.do("exec", args{"host": "localhost", "command": "echo >1", "cwd": dir})
	reads(3, "a")
	a.do("exec", args{"host": "localhost", "command": "echo >2", "cwd": dir})
	reads(7, "a😀b\n")
}

// Of a large fleet an agent is told as much as it can read, and the names of the rest.
func TestAgentHasManyHosts(t *testing.T) {
	h := newHouse(t)
	h.write(t, ".config/gateway/hosts.yaml", "hosts:\n  web[0001-3000]: {addr: 192.0.2.1, tags: [eu, old]}\n")
	h.serves(t)
	a, _ := h.stdio(t, eras[0])
	all := a.do("hosts", args{})
	if len(all.Hosts) != 100 || !strings.Contains(all.text, `"omitted":2900`) || !strings.HasSuffix(all.Next, ": web[0101-3000]") {
		t.Errorf("hosts = %d, in %d bytes, %s", len(all.Hosts), len(all.text), all.Next)
	}
	if one := a.do("hosts", args{"select": "web2999"}); len(one.Hosts) != 1 || one.Next != "" {
		t.Errorf("one host = %s", one.text)
	}
}
