package mcpserver_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/session"
)

// What one call has shown is not shown again because another one, which began
// before it, ends after it.
func TestShownOnce(t *testing.T) {
	const text = "seen by the slow one, and by the fast one"
	const slow = 20
	command := func(to int) api.Command {
		return api.Command{ID: "s-1.1", Session: "s-1", Host: "web1", State: string(api.Running), StartedAt: time.Now(), To: int64(to)}
	}
	waits, goOn := make(chan struct{}), make(chan struct{})
	routes := http.NewServeMux()
	routes.HandleFunc("GET /v1/sessions/s-1", always(api.Session{ID: "s-1", Name: "s", Host: "web1", State: api.Running}))
	routes.HandleFunc("GET /v1/commands/s-1.1", always(command(0)))
	routes.HandleFunc("POST /v1/sessions/s-1/wait", func(w http.ResponseWriter, r *http.Request) {
		var wait api.Wait
		_ = json.NewDecoder(r.Body).Decode(&wait) // as above
		c := command(len(text))
		if wait.Until == api.UntilMatch {
			c = command(slow)
			close(waits)
			<-goOn
		}
		reply(w, api.Waited{Command: &c})
	})
	routes.HandleFunc("POST /v1/sessions/s-1/output", func(w http.ResponseWriter, r *http.Request) {
		var q api.Query
		_ = json.NewDecoder(r.Body).Decode(&q) // as above
		var o api.Output
		if q.Stream == "stdout" {
			o.Pieces = []api.Piece{{Stream: q.Stream, At: q.Since, Data: []byte(text[q.Since:q.To])}}
		}
		reply(w, o)
	})
	agent := agentOn(t, routes)
	shown := func(tool string, arguments map[string]any) (stdout string, cursor int) {
		text, failed := answered(t, agent, tool, arguments)
		var said struct {
			Stdout string
			Cursor int
		}
		if err := json.Unmarshal([]byte(text), &said); err != nil || failed {
			t.Errorf("%s = %s, %v", tool, text, err)
		}
		return said.Stdout, said.Cursor
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if stdout, cursor := shown("wait", map[string]any{"id": "s-1.1", "until": "match", "match": "x"}); stdout != "" || cursor != len(text) {
			t.Errorf("the slow one shows %q up to %d", stdout, cursor)
		}
	}()
	<-waits
	if stdout, cursor := shown("send", map[string]any{"id": "s-1.1"}); stdout != text || cursor != len(text) {
		t.Errorf("the fast one shows %q up to %d", stdout, cursor)
	}
	close(goOn)
	<-ended
	if stdout, _ := shown("send", map[string]any{"id": "s-1.1"}); stdout != "" {
		t.Errorf("shown again: %q", stdout)
	}
}

// A call that began before a command's end, and ends after another one has shown
// the result, shows the result too: it does not take it back.
func TestShownOver(t *testing.T) {
	command := func(state string) api.Command {
		c := api.Command{ID: "s-1.1", Session: "s-1", Host: "web1", State: state, StartedAt: time.Now(), To: 3}
		if c.Over() {
			c.ExitCode, c.Result = new(0), &gateway.Result{Result: session.Result{Verdict: session.Exited, Stdout: []byte("hi\n"), StdoutBytes: 3, Streams: session.Split}}
		}
		return c
	}
	waits, goOn := make(chan struct{}), make(chan struct{})
	var over atomic.Bool
	routes := http.NewServeMux()
	routes.HandleFunc("GET /v1/sessions/s-1", always(api.Session{ID: "s-1", Name: "s", Host: "web1", State: api.Running}))
	routes.HandleFunc("GET /v1/commands/s-1.1", func(w http.ResponseWriter, _ *http.Request) {
		state := string(api.Running)
		if over.Load() {
			state = string(session.Exited)
		}
		reply(w, command(state))
	})
	routes.HandleFunc("POST /v1/sessions/s-1/wait", func(w http.ResponseWriter, r *http.Request) {
		close(waits)
		<-goOn
		c := command(string(api.Running))
		reply(w, api.Waited{Command: &c})
	})
	routes.HandleFunc("POST /v1/sessions/s-1/output", always(api.Output{Pieces: []api.Piece{{Stream: "stdout", Data: []byte("hi\n")}}}))
	agent := agentOn(t, routes)
	verdict := func(tool string, arguments map[string]any) string {
		var said struct{ Verdict string }
		if err := json.Unmarshal([]byte(text(t, agent, tool, arguments)), &said); err != nil {
			t.Error(err)
		}
		return said.Verdict
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if got := verdict("wait", map[string]any{"id": "s-1.1", "until": "match", "match": "x"}); got != "exited" {
			t.Errorf("the slow one says %s behind the result", got)
		}
	}()
	<-waits
	over.Store(true)
	if got := verdict("send", map[string]any{"id": "s-1.1"}); got != "exited" {
		t.Errorf("the fast one says %s", got)
	}
	close(goOn)
	<-ended
}

// What a program has drawn is no question, and an answer names the way to its
// keys; of a long question the end is shown.
func TestPromptShown(t *testing.T) {
	long := strings.Repeat("~ ", 900)
	for kind, next := range map[session.PromptKind]string{
		session.LinePrompt:   "it waits for input: answer with send (id s-1.1), or interrupt it",
		session.ScreenPrompt: "it draws on the screen, and waits for keys: look with sessions (action screen), press keys with send (id s-1.1), or interrupt it",
	} {
		routes := http.NewServeMux()
		routes.HandleFunc("GET /v1/sessions/s", always(api.Session{ID: "s-1", Name: "s", Host: "web1", State: api.Idle}))
		routes.HandleFunc("POST /v1/sessions/s-1/commands", always(api.Command{ID: "s-1.1", Session: "s-1", Host: "web1", State: string(api.WaitingInput), Prompt: &api.Prompt{Text: long, Kind: string(kind)}}))
		routes.HandleFunc("POST /v1/sessions/s-1/output", always(api.Output{}))
		answer := text(t, agentOn(t, routes), "run", map[string]any{"session": "s", "command": "vi x", "tty": true})
		var said struct {
			Next   string
			Prompt struct{ Text string }
		}
		if err := json.Unmarshal([]byte(answer), &said); err != nil || said.Next != next || said.Prompt.Text != "…"+long[len(long)-199:] {
			t.Errorf("%s: %s, %v, want %q and 200 characters of the prompt", kind, answer, err, next)
		}
	}
}
