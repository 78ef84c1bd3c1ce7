package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"gateway/daemon/api"
	"gateway/daemon/client"
)

// follow returns what a client makes of a stream.
func follow(t testing.TB, body []byte) (events []api.Event, err error) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }))
	defer server.Close()
	c := client.New(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", server.Listener.Addr().String())
	}, "")
	defer c.Release()
	err = c.Follow(t.Context(), "name", 0, func(e api.Event) error {
		events = append(events, e)
		return nil
	})
	return events, err
}

// TestEventsAreWhatWasSent: data goes around package json, and must not be found where
// it is none.
func TestEventsAreWhatWasSent(t *testing.T) {
	const name = `"data_base64":"QUJD"`
	now := time.Now().UTC()
	sent := []api.Event{
		{Seq: 1, Time: now, Event: "started", Command: &api.Command{ID: "1", Text: `echo {"piece":{"data_base64":"QUJD"}}`}},
		{Seq: 2, Time: now, Event: "stdout", Piece: &api.Piece{Stream: "stdout", At: 7, Time: now, Data: []byte("some \"bytes\"\x00\xff\n"), Match: true}, Next: 9},
		{Seq: 3, Time: now, Event: "stderr", Piece: &api.Piece{Stream: name, Data: bytes.Repeat([]byte("x"), 1<<20)}},
		{Seq: 4, Time: now, Event: "stdout", Piece: &api.Piece{Data: []byte{}}},
		{Seq: 5, Time: now, Event: "stdout", Piece: &api.Piece{}}, // null
		{Seq: 6, Time: now, Event: "state", Session: &api.Session{Name: name}},
		{Seq: 7, Time: now, Event: "result", Command: &api.Command{ID: "1", Text: strings.Repeat(name, 50000)}},
	}
	var body bytes.Buffer
	for _, e := range sent {
		if err := json.NewEncoder(&body).Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	got, err := follow(t, body.Bytes())
	if err != nil || len(got) != len(sent) {
		t.Fatalf("%d of %d events, %v", len(got), len(sent), err)
	}
	for i, want := range sent {
		if !reflect.DeepEqual(got[i], want) {
			t.Errorf("event %d, %s, is another one", want.Seq, want.Event)
		}
	}
}

// TestStreamThatIsCut: an end within a line is no end of the stream.
func TestStreamThatIsCut(t *testing.T) {
	for name, rest := range map[string]string{
		"within data":  `{"seq":2,"event":"stdout","piece":{"data_base64":"QUJD`,
		"behind it":    `{"seq":2,"event":"stdout","piece":{"data_base64":"QUJD"`,
		"no newline":   `{"seq":2,"event":"stdout"}`,
		"a long one":   `{"seq":2,"event":"` + strings.Repeat("x", 1<<20),
		"no base64":    `{"seq":2,"event":"stdout","piece":{"data_base64":"Q*JD"}}` + "\n",
		"no such line": "nonsense\n",
	} {
		t.Run(name, func(t *testing.T) {
			events, err := follow(t, []byte(`{"seq":1,"event":"started"}`+"\n"+rest))
			if len(events) != 1 || !errors.Is(err, client.ErrLost) || errors.Is(err, io.EOF) {
				t.Errorf("%d events, %v; want one and ErrLost", len(events), err)
			}
		})
	}
}
