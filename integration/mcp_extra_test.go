package integration

import (
	"context"
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
