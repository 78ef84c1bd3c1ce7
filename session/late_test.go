package session_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// dozing is a machine of which a process that is stopped has read nothing: what its pipes say
// comes once a flush was asked for.
type dozing struct {
	transport.Transport
	stopped atomic.Bool
	flushed chan struct{} // closed by the first flush after that
	once    sync.Once
}

func (m *dozing) Pipe(ctx context.Context, command string) (*transport.Pipe, error) {
	pipe, err := m.Transport.Pipe(ctx, command)
	if err == nil {
		pipe.Stdin, pipe.Stdout = dozingStdin{pipe.Stdin, m}, dozingStdout{pipe.Stdout, m}
	}
	return pipe, err
}

type dozingStdin struct {
	io.WriteCloser
	machine *dozing
}

func (s dozingStdin) Write(b []byte) (int, error) {
	if s.machine.stopped.Load() && strings.HasPrefix(string(b), "( printf \"\\036F") {
		s.machine.once.Do(func() { close(s.machine.flushed) })
	}
	return s.WriteCloser.Write(b)
}

type dozingStdout struct {
	io.Reader
	machine *dozing
}

func (s dozingStdout) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	if s.machine.stopped.Load() {
		<-s.machine.flushed
	}
	return n, err
}

// TestLimitThatIsNoticedLate: a process that was stopped (^Z) while a limit passed first reads
// what has come meanwhile. A command that had ended by then was not ended by the limit, and
// one that had written was not idle.
func TestLimitThatIsNoticedLate(t *testing.T) {
	t.Parallel()
	further := filepath.Join(t.TempDir(), "go on")
	for name, command := range map[string]session.Command{
		"timeout":            {Text: "echo 1; (exit 3)", Timeout: 100 * time.Millisecond},
		"shell that ends":    {Text: "echo 1; exit 3", Timeout: 100 * time.Millisecond},
		"silence":            {Text: "echo 1; until [ -e '" + further + "' ]; do sleep 0.01; done; (exit 3)", Idle: time.Second},
		"the caller's limit": {Text: "echo 1; (exit 3)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &dozing{Transport: local.New(local.Config{Env: []string{"HOME=" + t.TempDir()}}), flushed: make(chan struct{})}
			defer m.Close()
			s, err := session.Open(t.Context(), m, session.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			ctx := t.Context()
			if command.Timeout+command.Idle == 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
			}
			m.stopped.Store(true)
			command.Started = func() { time.Sleep(command.Idle + 700*time.Millisecond) } // stands for the stop
			command.Output = func(session.Stream, []byte) { _ = os.WriteFile(further, nil, 0o600) }
			r, err := s.Run(ctx, command)
			if r.Verdict != session.Exited || r.ExitCode != 3 || string(r.Stdout) != "1\n" || err != nil {
				t.Errorf("got %s %d %q, %v, want exited 3", r.Verdict, r.ExitCode, r.Stdout, err)
			}
		})
	}
}
