package mcpserver

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"gateway/daemon/client"
	"gateway/gateway"
)

// silentDaemon returns a client of a daemon that takes what it is told and never answers.
func silentDaemon(t *testing.T) *client.Client {
	t.Helper()
	near, far := net.Pipe()
	go io.Copy(io.Discard, far) // ends with far
	c := client.New(func(context.Context) (net.Conn, error) { return near, nil }, "")
	t.Cleanup(func() {
		c.Release()
		far.Close()
	})
	return c
}

// Calls that need a daemon's word do not wait for it one after the other, and the
// other calls of their client not at all.
func TestPresenceOfSilentDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := silentDaemon(t)
		here := &presence{}
		here.ctx, here.cancel = context.WithCancel(t.Context())
		defer here.cancel()
		begun := time.Now()
		waits := make(chan error)
		for range 3 {
			go func() {
				_, err := here.client(t.Context(), c)
				waits <- err
			}()
		}
		synctest.Wait()
		if !here.mu.TryLock() { // as seen does, with every call
			t.Fatal("it is locked")
		}
		here.mu.Unlock()
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := here.client(cancelled, c); err == nil || time.Since(begun) > 0 {
			t.Errorf("a call that was cancelled gets %v after %v", err, time.Since(begun))
		}
		for range 3 {
			if err := <-waits; gateway.Code(err) != "daemon.unreachable" || gateway.Hint(err) == "" {
				t.Errorf("%v, want daemon.unreachable", err)
			}
		}
		if took := time.Since(begun); took != 5*time.Second {
			t.Errorf("they took %v", took)
		}
	})
}

// A session that is not opened in time because the daemon hangs is not the host's fault.
func TestUnopenedByStuckDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := silentDaemon(t)
		f := &call{Server: &Server{daemon: c}, ctx: t.Context()}
		if err := f.unopened("web1", context.DeadlineExceeded); gateway.Code(err) != "daemon.unreachable" {
			t.Errorf("%v, want daemon.unreachable", err)
		}
	})
}
