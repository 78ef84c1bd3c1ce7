package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/transport"
)

// An answer that could not be made, since the daemon gave one stream and not the
// other, leaves nothing behind in the next one.
func TestAnswerThatFails(t *testing.T) {
	const text = "one\n\x1b[3"
	asked := map[string]bool{} // whether the other streams were
	routes := http.NewServeMux()
	routes.HandleFunc("GET /v1/sessions/s-1", always(api.Session{ID: "s-1", Name: "s", Host: "web1", State: api.Running}))
	command := func(id string) api.Command {
		return api.Command{ID: id, Session: "s-1", Host: "web1", State: string(api.Running), StartedAt: time.Now(), To: int64(len(text))}
	}
	routes.HandleFunc("GET /v1/commands/{id}", func(w http.ResponseWriter, r *http.Request) { reply(w, command(r.PathValue("id"))) })
	routes.HandleFunc("POST /v1/sessions/s-1/wait", func(w http.ResponseWriter, r *http.Request) {
		var wait api.Wait
		_ = json.NewDecoder(r.Body).Decode(&wait) // the test sees what is missing
		c := command(wait.Command)
		reply(w, api.Waited{Command: &c})
	})
	routes.HandleFunc("POST /v1/sessions/s-1/output", func(w http.ResponseWriter, r *http.Request) {
		var q api.Query
		_ = json.NewDecoder(r.Body).Decode(&q) // as above
		var o api.Output
		switch {
		case q.Stream == "stdout":
			o.Pieces = []api.Piece{{Stream: q.Stream, Data: []byte(text)}}
		case !asked[q.Command]:
			asked[q.Command] = true
			w.WriteHeader(http.StatusInternalServerError)
			reply(w, api.Failure{Error: gateway.NewJSONError(&transport.Error{Code: "internal", Message: "daemon: it can't be read"})})
			return
		}
		reply(w, o)
	})
	agent := agentOn(t, routes)
	for n := range 30 { // the streams are asked for in any order
		ask := map[string]any{"id": fmt.Sprintf("s-1.%d", n)}
		if said, failed := answered(t, agent, "send", ask); !failed {
			t.Fatalf("command %d: %s", n, said)
		}
		if said, failed := answered(t, agent, "send", ask); failed || !strings.Contains(said, `"stdout":"one\n"`) {
			t.Fatalf("command %d: %s", n, said)
		}
	}
}
