package ssh_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
	"gateway/transport"
	"gateway/transport/ssh"
	"gateway/transport/transporttest"
)

func TestMain(m *testing.M) {
	if relayed() {
		return
	}
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for something that must happen.
const patience = 20 * time.Second

// config is what reaches s with its own key.
func config(s *sshdtest.Server) ssh.Config {
	return ssh.Config{
		Name: "web1", Addr: s.Host, Port: s.Port, User: s.User,
		Identities: []ssh.Identity{{Path: s.KeyFile}},
		HostKeys:   hostKeys(s),
	}
}

func hostKeys(s *sshdtest.Server) *ssh.HostKeys {
	return &ssh.HostKeys{Name: "web1", Addr: s.Host, Port: s.Port, Files: []string{s.KnownHosts}}
}

// behind is what reaches s through p.
func behind(p *netsim.Proxy, s *sshdtest.Server) ssh.Config {
	c := config(s)
	c.Port = p.Port()
	return c
}

// dial connects, and closes with the test.
func dial(t testing.TB, c ssh.Config) *ssh.Transport {
	t.Helper()
	tr, err := ssh.Dial(t.Context(), c)
	if err != nil {
		t.Fatalf("Dial = %v", err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

func pipe(t testing.TB, tr *ssh.Transport, command string) *transport.Pipe {
	t.Helper()
	pipe, err := tr.Pipe(t.Context(), command)
	if err != nil {
		t.Fatalf("Pipe(%q) = %v", command, err)
	}
	return pipe
}

// output runs command on a pipe and returns its standard output.
func output(t testing.TB, tr *ssh.Transport, command string) string {
	t.Helper()
	pipe := pipe(t, tr, command)
	defer pipe.Close()
	return read(t, pipe.Stdout)
}

func read(t testing.TB, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Errorf("read: %v after %q", err, b)
	}
	return string(b)
}

// within fails the test when f takes longer than patience.
func within(t testing.TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s took longer than %v", what, patience)
	}
}

// wantCode checks an error's code and that its message holds every text.
func wantCode(t testing.TB, err error, code string, texts ...string) *transport.Error {
	t.Helper()
	var typed *transport.Error
	if !errors.As(err, &typed) {
		t.Fatalf("error = %T %v, want a *transport.Error %s", err, err, code)
	}
	t.Logf("%v [%s]", err, typed.Hint)
	if typed.Code != code {
		t.Errorf("code = %s (%v), want %s", typed.Code, err, code)
	}
	for _, text := range texts {
		if !strings.Contains(typed.Message, text) {
			t.Errorf("message = %q, want %q in it", typed.Message, text)
		}
	}
	return typed
}

// refused dials and wants it to fail.
func refused(t testing.TB, c ssh.Config, code string, texts ...string) *transport.Error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tr, err := ssh.Dial(ctx, c)
	if err == nil {
		tr.Close()
		t.Fatalf("Dial = nil, want %s", code)
	}
	return wantCode(t, err, code, texts...)
}

func TestContract(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	transporttest.Run(t, func(t testing.TB) transport.Transport { return dial(t, config(s)) })
}

func TestContractThroughBastion(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	bastion := sshdtest.Start(t, sshdtest.Options{})
	transporttest.Run(t, func(t testing.TB) transport.Transport {
		c, jump := config(s), config(bastion)
		jump.Name, c.Jump = "bastion", &jump
		return dial(t, c)
	})
}
