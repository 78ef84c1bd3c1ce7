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

// dozing is a process that is stopped, which has read nothing: what the pipes of a machine say
// comes once a flush was asked for.
type dozing struct {
	stopped atomic.Bool
	flushed chan struct{} // closed by the first flush after that
	once    sync.Once
}

func (d *dozing) pipe(_ string, p *transport.Pipe) {
	p.Stdin, p.Stdout = dozingStdin{p.Stdin, d}, dozingStdout{p.Stdout, d}
}

type dozingStdin struct {
	io.WriteCloser
	process *dozing
}

func (s dozingStdin) Write(b []byte) (int, error) {
	if s.process.stopped.Load() && strings.HasPrefix(string(b), "( printf \"\\036F") {
		s.process.once.Do(func() { close(s.process.flushed) })
	}
	return s.WriteCloser.Write(b)
}

type dozingStdout struct {
	io.Reader
	process *dozing
}

func (s dozingStdout) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	if s.process.stopped.Load() {
		<-s.process.flushed
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
			d := &dozing{flushed: make(chan struct{})}
			machine := altered{Transport: local.New(local.Config{Env: []string{"HOME=" + t.TempDir()}}), pipe: d.pipe}
			s := openOn(t, machine, session.Config{})
			ctx := t.Context()
			if command.Timeout+command.Idle == 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
			}
			d.stopped.Store(true)
			command.Started = func() { time.Sleep(command.Idle + 700*time.Millisecond) } // stands for the stop
			command.Output = func(session.Stream, []byte) { _ = os.WriteFile(further, nil, 0o600) }
			r, err := s.Run(ctx, command)
			if r.Verdict != session.Exited || r.ExitCode != 3 || string(r.Stdout) != "1\n" || err != nil {
				t.Errorf("got %s %d %q, %v, want exited 3", r.Verdict, r.ExitCode, r.Stdout, err)
			}
		})
	}
}
