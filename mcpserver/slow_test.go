package mcpserver_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gateway/mcpserver"
)

// Who begins a request and does not go on, with a token or without, holds no connection
// for good; one that comes slowly is served, and its answer may take longer.
func TestSlowRequests(t *testing.T) {
	const token, body = "token-0123456789abcdef", `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, test := range []struct {
		name, token string
		parts       []string
		status      string // empty: there is no answer
	}{
		{"nobody", "", nil, ""},
		{"stalls", token, []string{body[:9]}, ""},
		{"slow", token, []string{body[:9], body[9:20], body[20:30], body[30:]}, "200 OK"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler, servers, err := mcpserver.Handler(mcpserver.Config{}, []mcpserver.Token{{Secret: token, Scope: "test", Name: "token"}})
				if err != nil {
					t.Fatal(err)
				}
				defer servers[0].Close()
				near, far := net.Pipe()
				l := &single{conns: make(chan net.Conn, 1)}
				l.conns <- far
				served := make(chan error)
				go func() { served <- mcpserver.Serve(t.Context(), l, handler) }()
				fmt.Fprintf(near, "POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
					"Accept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n", test.token, len(body))
				for _, part := range test.parts {
					time.Sleep(20 * time.Second)
					_, _ = io.WriteString(near, part)
				}
				begun := time.Now()
				answer, err := http.ReadResponse(bufio.NewReader(near), nil)
				switch {
				case test.status == "" && (answer != nil && answer.StatusCode == http.StatusOK || time.Since(begun) > time.Minute):
					t.Errorf("answered %+v, %v after %v", answer, err, time.Since(begun))
				case test.status != "" && (err != nil || answer.Status != test.status):
					t.Errorf("answered %+v, %v, want %s", answer, err, test.status)
				}
				if answer != nil {
					said, err := io.ReadAll(answer.Body)
					if err != nil || test.status != "" && !strings.Contains(string(said), `"result":{}`) {
						t.Errorf("answered %q, %v", said, err)
					}
				}
				near.Close()
				close(l.conns)
				<-served
			})
		})
	}
}

// single listens for the connections that it is given.
type single struct{ conns chan net.Conn }

func (l *single) Accept() (net.Conn, error) {
	if c := <-l.conns; c != nil {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (*single) Close() error   { return nil }
func (*single) Addr() net.Addr { return &net.TCPAddr{} }
