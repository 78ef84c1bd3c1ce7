package daemon

import (
	"context"
	"sync"
	"testing"
	"time"

	"gateway/daemon/api"
	"gateway/gateway"
)

// A mistake while one caller connects is not the end of those who wait for the same
// connection, nor does it keep a place.
func TestPanicWhileConnecting(t *testing.T) {
	p := newPool(time.Minute)
	begun, waits := make(chan struct{}), make(chan struct{})
	who := &asker{questions: newQuestions(), send: func(api.OpenEvent) error {
		close(begun)
		<-waits
		panic("a mistake")
	}}
	target := gateway.Target{Name: "web1", Addr: "127.0.0.1", Port: 1, Identities: []gateway.Identity{{Key: "env:KEY"}}}
	var all sync.WaitGroup
	all.Go(func() {
		defer func() {
			if recover() == nil {
				t.Error("it did not panic")
			}
		}()
		ctx := context.WithValue(t.Context(), askerKey{}, who)
		_, _, _ = p.get(ctx, target, who)
	})
	<-begun
	ctx := waiting{t.Context(), sync.OnceFunc(func() { close(waits) })}
	if _, _, err := p.get(ctx, target, &asker{}); gateway.Code(err) != "internal" || gateway.Hint(err) == "" {
		t.Errorf("who waited gets %v", err)
	}
	all.Wait()
	unused, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	p.unused(unused)
	if n := p.count(); n > 0 || unused.Err() != nil {
		t.Errorf("%d connections are left, %v", n, unused.Err())
	}
}
