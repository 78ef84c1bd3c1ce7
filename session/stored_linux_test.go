package session_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"gateway/session"
	"gateway/transport"
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

// A session outlives what is removed around it, as at a logout $XDG_RUNTIME_DIR and what
// is in /dev/shm: what it can't store any more is in nobody's result, and does not end a
// shell that leaves at what fails.
func TestDirectoryIsRemoved(t *testing.T) {
	t.Parallel()
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			s, runtime := openIn(t, session.Config{Shell: shell, Reopen: true})
			run(t, s, "v=kept")
			dirs, err := filepath.Glob(filepath.Join(runtime, ".gw-*"))
			if err != nil || len(dirs) == 0 {
				t.Fatalf("no directory: %v", err)
			}
			for _, dir := range dirs {
				eventually(t, "it is removed, while the keeper may store what it has in there", func() bool { return os.RemoveAll(dir) == nil })
			}
			for _, mode := range []string{"", "set -e; ", ""} {
				r := run(t, s, mode+"export A=1; echo $v; /bin/echo e >&2")
				want(t, r, 0, "kept\n", "e\n")
				if len(r.Terminal) > 0 {
					t.Errorf("on the terminal: %q", r.Terminal)
				}
			}
			long := ": " + strings.Repeat("x", 10_000)
			var refused *transport.Error
			if _, err := s.Run(t.Context(), session.Command{Text: long}); !errors.As(err, &refused) || !strings.HasPrefix(refused.Hint, "try again") {
				t.Errorf("a command that is to be stored there: %v, want that it can be tried again", err)
			}
			want(t, run(t, s, long), 0, "", "")
		})
	}
}
