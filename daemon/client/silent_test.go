package client_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/transport"
)

// silent is a client of a daemon that takes what it is sent, and says no more than
// first, as one that was stopped.
func silent(first string) (c *client.Client, end func()) {
	var theirs []net.Conn
	c = client.New(func(context.Context) (net.Conn, error) {
		near, far := net.Pipe()
		theirs = append(theirs, far)
		go func() { // ends with far
			_, _ = far.Read(make([]byte, 1<<10)) // before it, an answer belongs to no request
			go io.WriteString(far, first)
			_, _ = io.Copy(io.Discard, far)
		}()
		return near, nil
	}, "")
	return c, func() {
		c.Release()
		for _, conn := range theirs {
			conn.Close()
		}
	}
}

// TestSilentDaemon: nothing is waited for for ever that a daemon can do in a known time.
func TestSilentDaemon(t *testing.T) {
	const bound, greeted = 5 * time.Second, 6 * time.Second
	for name, test := range map[string]struct {
		limit time.Duration
		call  func(context.Context, *client.Client) error
	}{
		"Hello":    {bound, func(ctx context.Context, c *client.Client) error { _, err := c.Hello(ctx); return err }},
		"Stats":    {greeted, func(ctx context.Context, c *client.Client) error { _, err := c.Stats(ctx); return err }},
		"Sessions": {greeted, func(ctx context.Context, c *client.Client) error { _, err := c.Sessions(ctx, true); return err }},
		"Session":  {greeted, func(ctx context.Context, c *client.Client) error { _, err := c.Session(ctx, "s"); return err }},
		"Command":  {greeted, func(ctx context.Context, c *client.Client) error { _, err := c.Command(ctx, "s.1", 1); return err }},
		"Screen":   {greeted, func(ctx context.Context, c *client.Client) error { _, err := c.Screen(ctx, "s"); return err }},
		"Resize":   {greeted, func(ctx context.Context, c *client.Client) error { return c.Resize(ctx, "s", transport.Size{}) }},
		"Output": {greeted, func(ctx context.Context, c *client.Client) error {
			_, err := c.Output(ctx, "s", api.Query{})
			return err
		}},
		"a search": {greeted, func(ctx context.Context, c *client.Client) error {
			_, err := c.Output(ctx, "s", api.Query{Grep: "x"})
			return err
		}},
		"Send":      {greeted, func(ctx context.Context, c *client.Client) error { return c.Send(ctx, "s", api.Input{Text: "x"}) }},
		"Interrupt": {greeted, func(ctx context.Context, c *client.Client) error { return c.Interrupt(ctx, "s", api.Interrupt{}) }},
		"Close":     {greeted, func(ctx context.Context, c *client.Client) error { _, err := c.Close(ctx, "s"); return err }},
		"Reset":     {greeted, func(ctx context.Context, c *client.Client) error { return c.Reset(ctx, "s") }},
		"Presence":  {bound, func(ctx context.Context, c *client.Client) error { _, _, err := c.Presence(ctx); return err }},
		"Attach":    {bound, func(ctx context.Context, c *client.Client) error { _, err := c.Attach(ctx, "s", "me"); return err }},
		"Run": {time.Minute + greeted, func(ctx context.Context, c *client.Client) error {
			_, err := c.Run(ctx, "s", api.Run{Text: "x", Wait: api.Duration(time.Minute)})
			return err
		}},
		"Open": {greeted, func(ctx context.Context, c *client.Client) error {
			_, err := c.Open(ctx, api.Open{}, gateway.Caller{})
			return err
		}},
		"Exec": {time.Minute + greeted, func(ctx context.Context, c *client.Client) error {
			return c.Exec(ctx, "s", api.Run{Text: "x", Timeout: api.Duration(time.Minute), Idle: api.Duration(time.Hour)}, func(api.Event) error { return nil })
		}},
		"Exec with a limit for silence": {time.Minute + greeted, func(ctx context.Context, c *client.Client) error {
			return c.Exec(ctx, "s", api.Run{Text: "x", Idle: api.Duration(time.Minute)}, func(api.Event) error { return nil })
		}},
		"Wait": {time.Minute + greeted, func(ctx context.Context, c *client.Client) error {
			_, err := c.Wait(ctx, "s", api.Wait{Until: api.UntilExit, Max: api.Duration(time.Minute)})
			return err
		}},
	} {
		for what, first := range map[string]string{"nothing": "", "half an answer": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"} {
			t.Run(name+" gets "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, end := silent(first)
					defer end()
					begun := time.Now()
					err := test.call(t.Context(), c)
					if gateway.Code(err) != "daemon.unreachable" || gateway.Hint(err) == "" || !strings.Contains(err.Error(), "does not answer") || !errors.Is(err, client.ErrLost) {
						t.Errorf("%v, %q, want daemon.unreachable", err, gateway.Hint(err))
					}
					if typed := strings.Contains(err.Error(), "may have been typed"); typed != (name == "Send") {
						t.Errorf("%v: said to be typed: %v", err, typed)
					}
					if took := time.Since(begun); took != test.limit {
						t.Errorf("after %v, want %v", took, test.limit)
					}
				})
			})
		}
	}
}

// A program need not read what is typed, and a machine may take its time: a daemon that
// waits for them answers others meanwhile.
func TestAliveDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takes := map[string]time.Duration{api.RouteHello: 0, "/v1/sessions/s/commands": 2 * time.Minute, "/v1/sessions/s/wait": 2 * time.Minute, "/v1/sessions/s/output": 2 * time.Minute}
		var servers sync.WaitGroup
		c := client.New(func(context.Context) (net.Conn, error) {
			near, far := net.Pipe()
			servers.Go(func() { // ends with near
				defer far.Close()
				from := bufio.NewReader(far)
				for {
					request, err := http.ReadRequest(from)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, request.Body)
					if pause, ok := takes[request.URL.Path]; ok {
						time.Sleep(pause)
					} else {
						time.Sleep(time.Hour)
					}
					_, _ = io.WriteString(far, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
				}
			})
			return near, nil
		}, "")
		begun := time.Now()
		if err := c.Send(t.Context(), "s", api.Input{Text: "x"}); err != nil || time.Since(begun) != time.Hour {
			t.Errorf("%v after %v, want an hour", err, time.Since(begun))
		}
		begun = time.Now()
		if err := c.Reset(t.Context(), "s"); gateway.Code(err) != "daemon.unreachable" || time.Since(begun) != 3*time.Minute {
			t.Errorf("%v after %v, want daemon.unreachable after three minutes", err, time.Since(begun))
		}
		// Much output takes its time on a machine that has much to do.
		if _, err := c.Run(t.Context(), "s", api.Run{Text: "x"}); err != nil {
			t.Errorf("Run = %v", err)
		}
		if _, err := c.Wait(t.Context(), "s", api.Wait{Until: api.UntilExit, Max: api.Duration(time.Second)}); err != nil {
			t.Errorf("Wait = %v", err)
		}
		if _, err := c.Output(t.Context(), "s", api.Query{}); err != nil {
			t.Errorf("Output = %v", err)
		}
		c.Release()
		servers.Wait()
	})
}

// What the daemon has said in time is not taken back: a presence lasts.
func TestPresenceLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, end := silent("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11\r\n{\"client\":\"c-1\"}\n\r\n")
		defer end()
		ctx, leave := context.WithCancel(t.Context())
		here, over, err := c.Presence(ctx)
		if err != nil || here.Client != "c-1" {
			t.Fatalf("Presence = %+v, %v", here, err)
		}
		select {
		case <-over:
			t.Error("it is over")
		case <-time.After(time.Hour):
		}
		leave()
		<-over
	})
}
