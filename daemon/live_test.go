package daemon

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

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
	s, err := d.open(t.Context(), api.Open{Target: gateway.Target{Name: "localhost", Local: true}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A session that is still being opened is not waited for: its machine may be silent for
// as long as connecting may take.
func TestDrainEndsAnOpening(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d, err := New(Config{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		_, err := d.open(t.Context(), api.Open{Target: gateway.Target{
			Name: "silent", Addr: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, User: "nobody", ConnectTimeout: 30 * time.Second,
		}})
		opened <- err
	}()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	d.Drain(ctx)
	if ctx.Err() != nil {
		t.Error("Drain has waited for it")
	}
	if err := <-opened; gateway.Code(err) != "daemon.unreachable" {
		t.Errorf("open = %v, want that the daemon is ending", err)
	}
}

// Who opens a session while the daemon ends is not told that it is there.
func TestOpenWhileTheDaemonEnds(t *testing.T) {
	d, err := New(Config{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Drain(t.Context()) })
	asked := &asker{questions: d.questions, send: func(e api.OpenEvent) error { // once its place is reserved
		close(d.ending)
		d.questions.answer(e.Question.ID, api.Answer{Text: "secret"})
		return nil
	}}
	ctx := context.WithValue(t.Context(), askerKey{}, asked)
	_, err = d.open(ctx, api.Open{Target: gateway.Target{Name: "localhost", Local: true}, SudoPassword: "env:SECRET"})
	if gateway.Code(err) != "daemon.unreachable" {
		t.Errorf("open = %v, want that the daemon is ending", err)
	}
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

// waiting is a context that tells when somebody waits for its end.
type waiting struct {
	context.Context
	tell func()
}

func (w waiting) Done() <-chan struct{} {
	w.tell()
	return w.Context.Done()
}

// Who attaches while a request waits for the command that runs has the terminal
// alone.
func TestAttachWhileOthersWait(t *testing.T) {
	for name, request := range map[string]func(context.Context, *live) error{
		"reset": func(ctx context.Context, s *live) error { return s.reset(ctx) },
		"send":  func(ctx context.Context, s *live) error { return s.send(ctx, api.Input{Text: "x"}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			s.mu.Lock()
			s.runs, s.session.Command = true, &api.Command{ID: s.session.ID + ".1"} // accepted, and not begun
			s.mu.Unlock()
			waits, done := make(chan struct{}), make(chan error)
			ctx := waiting{t.Context(), sync.OnceFunc(func() { close(waits) })}
			go func() { done <- request(ctx, s) }()
			<-waits
			if _, err := s.attach("Ada"); err != nil {
				t.Fatal(err)
			}
			s.mu.Lock()
			s.runs, s.begun = false, true
			s.happened()
			s.mu.Unlock()
			if err := <-done; gateway.Code(err) != "session.busy" || !strings.Contains(err.Error(), "Ada") {
				t.Errorf("%v, want busy, and with whom", err)
			}
		})
	}
}

func TestStamp(t *testing.T) {
	local := time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.FixedZone("east", 7200))
	if got := stampOf(local).Format(time.RFC3339Nano); got != "2026-01-02T01:04:05.678901Z" {
		t.Errorf("stampOf = %s", got)
	}
	if got := stamp(); got.Location() != time.UTC || time.Since(got) > time.Minute {
		t.Errorf("stamp = %v", got)
	}
}
