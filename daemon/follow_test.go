package daemon

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"gateway/daemon/api"
	"gateway/internal/transcript"
)

// A follower sends what happens last, also where it has just looked when that and the
// session's end come.
func TestFollowToTheEnd(t *testing.T) {
	log, err := transcript.Create(filepath.Join(t.TempDir(), "log"), transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		s := &live{log: log, over: make(chan struct{})}
		var told []string
		waits, followed := make(chan struct{}), make(chan error)
		ctx := waiting{t.Context(), sync.OnceFunc(func() { close(waits) })}
		go func() {
			followed <- s.follow(ctx, 0, nil, 0, func(line any) error {
				told = append(told, line.(api.Event).Event)
				return nil
			})
		}()
		<-waits
		s.mu.Lock()
		s.happened() // the follower is to look
		s.mu.Unlock()
		s.mu.Lock()
		s.noteLocked("closed", nil)
		s.mu.Unlock()
		s.mu.Lock()
		close(s.over)
		s.happened()
		s.mu.Unlock()
		if err := <-followed; err != nil || !slices.Equal(told, []string{"closed"}) {
			t.Fatalf("told %q, %v", told, err)
		}
	}
}
