package daemon

import (
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"gateway/daemon/api"
	"gateway/internal/transcript"
)

// A follower sends what happens last, also where it has just looked when that and the
// session's end come.
func TestFollowToTheEnd(t *testing.T) {
	// On one processor a mutex that others have waited for goes, with the processor,
	// from who looks to who notes.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	log, err := transcript.Create(filepath.Join(t.TempDir(), "log"), transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
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
		<-time.After(time.Millisecond)
		go func() {
			s.mu.Lock()
			s.noteLocked("closed", nil)
			s.mu.Unlock()
			close(s.over)
		}()
		<-time.After(3 * time.Millisecond)
		s.mu.Unlock()
		s.mu.Lock() // who has waited for a millisecond and misses it gets it handed over from then on
		<-time.After(time.Millisecond)
		s.mu.Unlock()
		if err := <-followed; err != nil || !slices.Equal(told, []string{"closed"}) {
			t.Fatalf("told %q, %v", told, err)
		}
	}
}
