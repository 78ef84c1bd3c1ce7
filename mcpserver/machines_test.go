package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	"gateway/gateway"
	"gateway/hosts"
)

// TestFailedMachineIsTriedAgain: where a host was not reached, and nobody waited for that
// any more, the next call is not told of it, but tries again.
func TestFailedMachineIsTriedAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	inv, err := hosts.Parse("hosts.yaml", fmt.Appendf(nil, "hosts:\n  web1: {addr: 127.0.0.1, port: %d, agent: false, connect_timeout: 2s}\n", l.Addr().(*net.TCPAddr).Port))
	if err != nil {
		t.Fatal(err)
	}
	var dialled atomic.Int32
	first, ends := make(chan struct{}), make(chan struct{})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if dialled.Add(1) == 1 {
				close(first)
			}
			<-ends
			c.Close()
		}
	}()
	ms := &machines{gateway: gateway.New(gateway.Config{Inventory: inv})}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-first
		cancel()
	}()
	if _, _, err := ms.get(ctx, "web1"); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want %v", err, context.Canceled)
	}
	ms.mu.Lock()
	m := ms.of["web1"]
	ms.mu.Unlock()
	close(ends)
	<-m.opened
	before := dialled.Load()
	if _, _, err := ms.get(t.Context(), "web1"); err == nil || dialled.Load() == before {
		t.Errorf("%v, without another try", err)
	}
}
