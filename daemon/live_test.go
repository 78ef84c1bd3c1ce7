package daemon

import (
	"context"
	"errors"
	"testing"

	"gateway/daemon/api"
	"gateway/gateway"
)

// open opens a session on this machine.
func open(t *testing.T) *live {
	t.Helper()
	d, err := New(Config{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		d.Drain(ctx)
	})
	info, err := d.open(t.Context(), api.Open{Target: gateway.Target{Name: "localhost", Local: true}}, nobody)
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.find("", info.ID)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Where a command has ended the shell, the next one waits until it is known what
// comes of that, but no longer than its caller.
func TestRunBehindTheShellsEnd(t *testing.T) {
	s := open(t)
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	gone := errors.New("the caller is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := s.run(ctx, api.Run{Text: "true"}); !errors.Is(err, gone) {
		t.Errorf("run = %v, want %v", err, gone)
	}
	ran := make(chan error)
	go func() {
		_, err := s.run(t.Context(), api.Run{Text: "true"})
		ran <- err
	}()
	if err := s.reset(t.Context()); err != nil {
		t.Errorf("reset = %v", err)
	}
	if err := <-ran; err != nil && gateway.Code(err) != "session.busy" { // which is until the fresh shell has come
		t.Errorf("run behind a reset = %v", err)
	}
}
