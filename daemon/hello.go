package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"gateway/daemon/api"
	"gateway/gateway"
	"gateway/transport"
)

func newGate(handler http.Handler, life Life) *gate {
	g := &gate{life: life, started: time.Now(), used: time.Now(), ended: make(chan struct{})}
	routes := http.NewServeMux()
	routes.HandleFunc("GET "+api.RouteHello, func(w http.ResponseWriter, _ *http.Request) { g.sayHello(w) })
	routes.HandleFunc("POST "+api.RouteStop, g.stop)
	routes.Handle("/", handler)
	g.routes = routes
	return g
}

// ServeHTTP implements [http.Handler]: the handshake, then the routes.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(api.ProtocolHeader, strconv.Itoa(api.Protocol))
	idle := listens(r)
	if !g.enter(idle) {
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusServiceUnavailable, &transport.Error{Code: "daemon.unreachable", Message: "daemon: it is ending", Hint: "try again"})
		return
	}
	defer g.leave(idle)
	theirs := r.Header.Get(api.ProtocolHeader)
	// Who does not speak our language can still ask us to go.
	if theirs != strconv.Itoa(api.Protocol) && r.URL.Path != api.RouteStop {
		refuse(w, http.StatusUpgradeRequired, g.mismatch(theirs))
		return
	}
	g.routes.ServeHTTP(w, r)
}

// listens reports whether a request does nothing but wait: an agent that is there,
// and a reader of what happens to sessions. They lose nothing with the daemon.
func listens(r *http.Request) bool {
	return r.URL.Path == "/v1/clients" || r.URL.Path == "/v1/events"
}

// mismatch says who does not understand whom. The remedy is a command that
// every version has.
func (g *gate) mismatch(theirs string) error {
	if theirs == "" {
		theirs = "none"
	}
	hint := "end the daemon with: gateway serve --stop"
	sessions := g.life.Sessions()
	if sessions > 0 {
		hint = "close its sessions with the gateway that opened them, then: gateway serve --stop; or close them all: gateway serve --stop --force"
	}
	return &transport.Error{
		Code: "daemon.version", Hint: hint,
		Message: fmt.Sprintf("daemon: process %d of version %s, with %s, speaks protocol %d, and the caller %.20s",
			os.Getpid(), g.life.Version, count(sessions, "open session"), api.Protocol, theirs),
	}
}

func (g *gate) sayHello(w http.ResponseWriter) {
	_ = reply(w, api.Hello{ // whoever does not read it is gone
		Protocol: api.Protocol, Version: g.life.Version, PID: os.Getpid(), Started: stampOf(g.started),
		Sessions: g.life.Sessions(),
	})
}

// stop answers who asks the daemon to end.
func (g *gate) stop(w http.ResponseWriter, r *http.Request) {
	var ask api.Stop
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&ask); err != nil && !errors.Is(err, io.EOF) {
		refuse(w, http.StatusBadRequest, usage("", "stop: %v", err))
		return
	}
	if ask.Force {
		g.forced.Store(true)
		g.end()
	} else if sessions, requests := g.endIfFree(); sessions > 0 || requests > 0 {
		hint := "close them first (gateway session close --all)"
		if sessions == 0 {
			hint = "wait for those who use it, such as an exec over its connection"
		}
		refuse(w, http.StatusConflict, &transport.Error{
			Code:    "session.busy",
			Message: fmt.Sprintf("daemon: it has %s and %s", count(sessions, "open session"), count(requests, "request")),
			Hint:    hint + ", or end the daemon with them: gateway serve --stop --force",
		})
		return
	}
	w.Header().Set("Connection", "close")
	g.sayHello(w)
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// reply answers with a value.
func reply(w http.ResponseWriter, value any) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(value)
}

// refuse answers with an error. Whoever does not read it is gone.
func refuse(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(api.Failure{Error: gateway.NewJSONError(err)})
}
