package client_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"gateway/daemon/api"
	"gateway/daemon/client"
	"gateway/gateway"
	"gateway/internal/socket"
)

// TestOwnCause: who cancels for a reason of his own finds both in the error.
func TestOwnCause(t *testing.T) {
	cause := errors.New("enough")
	check := func(t *testing.T, err error) {
		t.Helper()
		if !errors.Is(err, cause) || !errors.Is(err, context.Canceled) || gateway.Code(err) != "cmd.interrupted" {
			t.Errorf("%v (%s), want %v and that it was cancelled", err, gateway.Code(err), cause)
		}
	}
	for name, call := range map[string]func(context.Context, *client.Client) error{
		"Hello": func(ctx context.Context, c *client.Client) error { _, err := c.Hello(ctx); return err },
		"Send":  func(ctx context.Context, c *client.Client) error { return c.Send(ctx, "s", api.Input{Text: "x"}) },
		"Wait":  func(ctx context.Context, c *client.Client) error { _, err := c.Wait(ctx, "s", api.Wait{}); return err },
		"Attach": func(ctx context.Context, c *client.Client) error {
			_, err := c.Attach(ctx, "s", "me")
			return err
		},
		"Follow": func(ctx context.Context, c *client.Client) error {
			return c.Follow(ctx, "s", 0, func(api.Event) error { return nil })
		},
		"Open": func(ctx context.Context, c *client.Client) error {
			_, err := c.Open(ctx, api.Open{}, gateway.Caller{})
			return err
		},
	} {
		for what, first := range map[string]string{"nothing": "", "half an answer": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"} {
			t.Run(name+" gets "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, end := silent(first)
					defer end()
					ctx, cancel := context.WithCancelCause(t.Context())
					time.AfterFunc(time.Second/2, func() { cancel(cause) })
					check(t, call(ctx, c))
				})
			})
		}
	}
	t.Run("Borrow", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "socket")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { // ends with l
			if conn, err := l.Accept(); err == nil {
				defer conn.Close()
				cancel(cause)
				<-ctx.Done()
			}
		}()
		_, err = client.Borrow(ctx, func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}, api.Lend{})
		check(t, err)
	})
	t.Run("Start", func(t *testing.T) {
		dir := newDir(t)
		if err := socket.MakeDir(socketIn(dir)); err != nil {
			t.Fatal(err)
		}
		lock, err := socket.Take(t.Context(), socketIn(dir)+".start")
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Release()
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
		_, err = client.Start(ctx, options(dir, "daemon"))
		check(t, err)
	})
}
