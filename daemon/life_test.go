package daemon_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gateway/daemon"
	"gateway/daemon/api"
	"gateway/internal/sshdtest"
)

// A room is a daemon's listener in memory, and the way in.
type room struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newRoom() *room { return &room{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (r *room) Accept() (net.Conn, error) {
	select {
	case conn := <-r.conns:
		return conn, nil
	case <-r.closed:
		return nil, net.ErrClosed
	}
}

func (r *room) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}

func (r *room) Addr() net.Addr { return &net.UnixAddr{Name: "room", Net: "unix"} }

func (r *room) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case r.conns <- theirs:
			return ours, nil
		case <-r.closed:
			return nil, net.ErrClosed
		}
	}}}
}

// An answer is a status and the error of the body, if it is one.
type answer struct {
	status int
	code   string
	text   string
	header http.Header
}

// ask sends a request that speaks a protocol.
func ask(t *testing.T, c *http.Client, protocol, method, path, body string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://gateway"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if protocol != "" {
		request.Header.Set(api.ProtocolHeader, protocol)
	}
	response, err := c.Do(request)
	if err != nil {
		return answer{text: err.Error()}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{response.StatusCode, "", string(text), response.Header}
	var failure api.Failure
	if json.Unmarshal(text, &failure) == nil && failure.Error != nil {
		a.code = failure.Error.Code
	}
	return a
}

var ours = strconv.Itoa(api.Protocol)

// house is a daemon in a bubble.
type house struct {
	*room
	sessions atomic.Int64
	end      context.CancelFunc
	ended    chan error
	drained  atomic.Bool
}

// serve starts a daemon.
func serve(t *testing.T, handler http.Handler, life daemon.Life) *house {
	h := &house{room: newRoom(), ended: make(chan error, 1)}
	life.Sessions = func() int { return int(h.sessions.Load()) }
	drain := life.Drain
	life.Drain = func(ctx context.Context) {
		h.drained.Store(true)
		if drain != nil {
			drain(ctx)
		}
		h.sessions.Store(0)
	}
	ctx, cancel := context.WithCancel(t.Context())
	h.end = cancel
	go func() { h.ended <- daemon.Serve(ctx, h.room, handler, life) }()
	return h
}

// over reports whether the daemon has ended.
func (h *house) over() bool {
	synctest.Wait()
	return len(h.ended) > 0
}

func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		h := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-block }), daemon.Life{Idle: 15 * time.Minute})
		defer h.end()
		client := h.client()
		defer client.CloseIdleConnections()

		time.Sleep(14 * time.Minute)
		if a := ask(t, client, ours, "GET", "/v1/hello", ""); a.status != 200 {
			t.Fatalf("hello after 14 minutes: %+v", a)
		}
		time.Sleep(14 * time.Minute)
		if h.over() {
			t.Fatal("ended 14 minutes after a request")
		}
		h.sessions.Store(1)
		time.Sleep(3 * time.Hour)
		if h.over() {
			t.Fatal("ended with a session")
		}
		h.sessions.Store(0)
		go func() { _ = ask(t, client, ours, "GET", "/long", "") }()
		time.Sleep(3 * time.Hour)
		if h.over() {
			t.Fatal("ended with a request in progress")
		}
		close(block)
		time.Sleep(14 * time.Minute)
		if h.over() {
			t.Fatal("ended 14 minutes after the end of a request")
		}
		time.Sleep(3 * time.Minute)
		if !h.over() || <-h.ended != nil || !h.drained.Load() {
			t.Error("still there 17 minutes after the last request")
		}
	})
}

func TestStaysWithoutIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serve(t, http.NotFoundHandler(), daemon.Life{})
		time.Sleep(1000 * time.Hour)
		if h.over() {
			t.Error("ended")
		}
		h.end()
		if err := <-h.ended; err != nil {
			t.Error(err)
		}
	})
}

func TestHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		draining := make(chan context.Context, 1)
		h := serve(t, http.NotFoundHandler(), daemon.Life{Version: "v1.2.3", Drain: func(ctx context.Context) { draining <- ctx }})
		client := h.client()
		h.sessions.Store(2)

		a := ask(t, client, ours, "GET", "/v1/hello", "")
		var hello api.Hello
		if err := json.Unmarshal([]byte(a.text), &hello); err != nil || a.status != 200 || a.header.Get(api.ProtocolHeader) != ours {
			t.Errorf("hello: %+v, %v", a, err)
		}
		if want := (api.Hello{Protocol: api.Protocol, Version: "v1.2.3", PID: os.Getpid(), Started: begun.UTC(), Sessions: 2}); hello != want {
			t.Errorf("hello = %+v, want %+v", hello, want)
		}
		for _, protocol := range []string{"", "0", "999", "x", ours + ".1"} {
			for _, path := range []string{"/v1/hello", "/v1/sessions"} {
				a := ask(t, client, protocol, "GET", path, "")
				if a.status != 426 || a.code != "daemon.version" || a.header.Get(api.ProtocolHeader) != ours ||
					!strings.Contains(a.text, "2 open sessions") || !strings.Contains(a.text, "gateway serve --stop") {
					t.Errorf("%s with protocol %q: %+v", path, protocol, a)
				}
			}
		}
		// Another version can end the daemon, and only with force if it has sessions.
		if a := ask(t, client, "999", "POST", "/v1/stop", "{}"); a.status != 409 || a.code != "session.busy" {
			t.Errorf("stop: %+v", a)
		}
		if h.over() {
			t.Fatal("a daemon with sessions ended")
		}
		if a := ask(t, client, "999", "POST", "/v1/stop", `{"force":true}`); a.status != 200 {
			t.Errorf("stop by force: %+v", a)
		}
		if ctx := <-draining; ctx.Err() == nil {
			t.Error("what runs may go on after a stop by force")
		}
		if err := <-h.ended; err != nil || !h.drained.Load() {
			t.Errorf("Serve = %v", err)
		}
	})
}

func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		h := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-block }), daemon.Life{})
		client := h.client()
		go func() { _ = ask(t, client, ours, "GET", "/long", "") }()
		synctest.Wait()
		if a := ask(t, client, ours, "POST", "/v1/stop", ""); a.status != 409 || !strings.Contains(a.text, "0 open sessions and 1 request") {
			t.Errorf("stop with a request in progress: %+v", a)
		}
		if a := ask(t, client, ours, "POST", "/v1/stop", "[]"); a.status != 400 || a.code != "usage" {
			t.Errorf("stop with an odd body: %+v", a)
		}
		close(block)
		synctest.Wait()
		if a := ask(t, client, ours, "POST", "/v1/stop", ""); a.status != 200 {
			t.Errorf("stop: %+v", a)
		}
		if err := <-h.ended; err != nil {
			t.Error(err)
		}
		if a := ask(t, client, ours, "GET", "/v1/hello", ""); a.status != 0 {
			t.Errorf("after the end: %+v", a)
		}
	})
}

// Who only listens is in nobody's way: an agent that does nothing, a reader of
// events. Their requests end with the daemon.
func TestStopWithListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		listening := func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
		mux := http.NewServeMux()
		mux.HandleFunc("POST /v1/clients", listening)
		mux.HandleFunc("GET /v1/events", listening)
		mux.HandleFunc("GET /long", func(http.ResponseWriter, *http.Request) { <-block })
		h := serve(t, mux, daemon.Life{})
		client := h.client()
		var listeners sync.WaitGroup
		for method, path := range map[string]string{"POST": "/v1/clients", "GET": "/v1/events?since=0"} {
			request, _ := http.NewRequest(method, "http://gateway"+path, nil)
			request.Header.Set(api.ProtocolHeader, ours)
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			listeners.Go(func() {
				_, _ = io.Copy(io.Discard, response.Body) // until it is cut
				response.Body.Close()
			})
		}
		go func() { _ = ask(t, client, ours, "GET", "/long", "") }()
		synctest.Wait()
		a := ask(t, client, ours, "POST", "/v1/stop", "")
		if a.status != 409 || !strings.Contains(a.text, "0 open sessions and 1 request\"") || strings.Contains(a.text, "close --all") {
			t.Errorf("stop with a request in progress: %+v", a)
		}
		close(block)
		synctest.Wait()
		if a := ask(t, client, ours, "POST", "/v1/stop", ""); a.status != 200 {
			t.Fatalf("stop with listeners: %+v", a)
		}
		if err := <-h.ended; err != nil {
			t.Error(err)
		}
		listeners.Wait()
		client.CloseIdleConnections()
	})
}

// Nothing begins while it drains, what was ended is still told, and what would
// last is cut.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{}) // the session
		mux := http.NewServeMux()
		mux.HandleFunc("/result", func(w http.ResponseWriter, _ *http.Request) {
			<-ended
			time.Sleep(100 * time.Millisecond)
			_, _ = io.WriteString(w, "result")
		})
		mux.HandleFunc("/forever", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "first\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		})
		refused := make(chan answer, 1)
		var h *house
		var idle *http.Client
		h = serve(t, mux, daemon.Life{Drain: func(context.Context) {
			refused <- ask(t, idle, ours, "GET", "/v1/hello", "")
			time.Sleep(3 * time.Second) // as a session may take
			close(ended)
		}})
		idle = h.client() // with a connection that was there before
		if a := ask(t, idle, ours, "GET", "/v1/hello", ""); a.status != 200 {
			t.Fatalf("hello: %+v", a)
		}
		client := h.client()
		result := make(chan answer, 1)
		go func() { result <- ask(t, client, ours, "GET", "/result", "") }()
		request, _ := http.NewRequest(http.MethodGet, "http://gateway/forever", nil)
		request.Header.Set(api.ProtocolHeader, ours)
		forever, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()

		begun := time.Now()
		h.end()
		if a := <-refused; a.status != 503 || a.code != "daemon.unreachable" {
			t.Errorf("a request to a daemon that ends: %+v", a)
		}
		if a := <-result; a.status != 200 || a.text != "result" {
			t.Errorf("the result of what was ended: %+v", a)
		}
		lines := bufio.NewReader(forever.Body)
		if line, _ := lines.ReadString('\n'); line != "first\n" {
			t.Errorf("read %q", line)
		}
		_, _ = lines.ReadString('\n') // until it is cut
		forever.Body.Close()
		if err := <-h.ended; err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); sshdtest.Over(t, took, 3*time.Second+1100*time.Millisecond) {
			t.Errorf("it took %v", took)
		}
		idle.CloseIdleConnections()
		client.CloseIdleConnections()
	})
}

// Sessions that cannot be closed do not keep the daemon.
func TestDrainIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := make(chan struct{})
		defer close(hung)
		h := serve(t, http.NotFoundHandler(), daemon.Life{Drain: func(context.Context) { <-hung }})
		begun := time.Now()
		h.end()
		<-h.ended
		if took := time.Since(begun); took < daemon.DrainTime || took > daemon.DrainTime+3*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A listener that fails ends the daemon with an error, and in order.
func TestBrokenListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serve(t, http.NotFoundHandler(), daemon.Life{})
		h.Close()
		if err := <-h.ended; err == nil || !h.drained.Load() {
			t.Errorf("Serve = %v", err)
		}
	})
}
