package mcpserver_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"gateway/daemon/api"
	"gateway/mcpserver"
)

// Whoever waits for as many calls as are possible is still heard: one more is
// refused at once, a ping is answered, and a call that is cancelled makes room. A call
// whose id is that of another one is refused, and takes none.
func TestTooManyCalls(t *testing.T) {
	command := api.Command{ID: "s-1.1", Session: "s-1", Host: "web1", State: string(api.Running), StartedAt: time.Now()}
	waiting := make(chan struct{})
	routes := http.NewServeMux()
	routes.HandleFunc("GET /v1/sessions/s", always(api.Session{ID: "s-1", Name: "s", Host: "web1", State: api.Running, Command: &command}))
	routes.HandleFunc("POST /v1/sessions/s-1/wait", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server notices only then that the caller is gone
		waiting <- struct{}{}
		<-r.Context().Done()
	})
	server := serverOn(t, routes)
	in, say := io.Pipe()
	hear, out := io.Pipe()
	t.Cleanup(func() { say.Close(); hear.Close() })
	go server.Run(t.Context(), mcpserver.Stdio(in, out)) // ends with the pipes
	answers := bufio.NewReader(hear)
	said := func(format string, a ...any) { fmt.Fprintf(say, `{"jsonrpc":"2.0",`+format+"}\n", a...) }
	heard := func(want string) {
		t.Helper()
		if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, want) {
			t.Fatalf("heard %s, %v, want %s", line, err, want)
		}
	}
	call := func(id int, tool, arguments string) {
		said(`"id":%d,"method":"tools/call","params":{"name":"%s","arguments":%s}`, id, tool, arguments)
	}
	said(`"id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
	heard(`"id":"i","result"`)
	said(`"method":"notifications/initialized"`)
	for id := range 32 {
		call(id, "wait", `{"session":"s","until":"exit","wait_ms":50000}`)
		<-waiting
	}
	call(32, "hosts", `{}`)
	heard(`"id":32,"error":{"code":-32000,"message":"32 calls are unanswered, and no more are possible: wait for an answer, or cancel a call"}`)
	said(`"id":33,"method":"ping"`)
	heard(`"id":33,"result"`)
	said(`"method":"notifications/cancelled","params":{"requestId":7}`)
	heard(`"id":7,`)
	call(34, "hosts", `{}`)
	heard(`"id":34,"result"`)
	for range 32 { // none of them takes a place
		call(8, "hosts", `{}`)
		heard(`"id":null,"error":{"code":-32600,"message":"a call with the id 8 is unanswered: use another id"}`)
	}
	call(35, "hosts", `{}`)
	heard(`"id":35,"result"`)
	said(`"method":"notifications/cancelled","params":{"requestId":8}`)
	heard(`"id":8,`)
	call(8, "hosts", `{}`)
	heard(`"id":8,"result"`)
}
