package session_test

import (
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"gateway/session"
)

// A keeper does not wait for room in a stream that the first command has filled before
// the keeper could say that it has stored the frames: nobody reads it behind the end of
// the session, and the keeper holds it open itself.
func TestKeeperWaitsForNoRoom(t *testing.T) {
	t.Parallel()
	for i := range 4 { // of some the keeper has said it by then
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			s, runtime := openIn(t, session.Config{Shell: "bash"})
			signalKeepers(t, runtime, syscall.SIGSTOP)
			begun, closed := make(chan struct{}), make(chan struct{})
			var once sync.Once
			var running sync.WaitGroup
			running.Go(func() {
				_, _ = s.Run(t.Context(), session.Command{Text: "yes", Output: func(session.Stream, []byte) {
					once.Do(func() { close(begun) })
					<-closed
				}})
			})
			<-begun
			signalKeepers(t, runtime, syscall.SIGCONT)
			s.Close()
			close(closed)
			running.Wait()
			eventually(t, "the keeper is gone", func() bool {
				left, _ := filepath.Glob(filepath.Join(runtime, ".gw-*"))
				return len(left) == 0
			})
		})
	}
}
