package transfer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"gateway/gateway"
	"gateway/hosts"
	"gateway/transport"
)

// mute is a machine whose programs read and never say a word.
type mute struct{ transport.Transport }

func (mute) Pipe(context.Context, string) (*transport.Pipe, error) {
	return piped(func(far net.Conn) { drain(far) }), nil
}

// piped returns the pipe of a program that is a function, and ends with the pipe.
func piped(run func(far net.Conn)) *transport.Pipe {
	near, far := net.Pipe()
	go run(far)
	ends, end := io.Pipe()
	end.Close()
	return &transport.Pipe{Stdin: near, Stdout: near, Stderr: ends, Program: program{near}}
}

func (m mute) Subsystem(ctx context.Context, name string) (*transport.Pipe, error) {
	return m.Pipe(ctx, name)
}

// polite is a mute machine whose server of sftp says what it speaks.
type polite struct{ mute }

func (polite) Subsystem(context.Context, string) (*transport.Pipe, error) {
	return piped(func(far net.Conn) {
		if _, err := io.ReadFull(far, make([]byte, 9)); err == nil { // SSH_FXP_INIT
			_, _ = far.Write([]byte{0, 0, 0, 5, 2, 0, 0, 0, 3}) // SSH_FXP_VERSION
			drain(far)
		}
	}), nil
}

// menu is a machine on which the login shell asks what to do, whatever it is to start.
type menu struct{ typed bytes.Buffer }

func (m *menu) Pipe(context.Context, string) (*transport.Pipe, error) {
	return piped(func(far net.Conn) {
		go io.WriteString(far, "1) restart\n2) erase\n> ")
		_, _ = io.Copy(&m.typed, far) // its end is the pipe's
	}), nil
}

// TestNothingTypedToAMenu: what is no shell might take what is typed to it for a choice.
func TestNothingTypedToAMenu(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m menu
		_, err := openShell(t.Context(), m.Pipe, greeting)
		if synctest.Wait(); !errors.Is(err, errNoShell) || m.typed.Len() > 0 {
			t.Errorf("%v; it was typed %q", err, &m.typed)
		}
	})
}

// What was started in place of a server or a shell may say nothing for ever, and
// the connection be well all the while. Only the caller's own end is called that.
func TestNoGreeting(t *testing.T) {
	sftp := func(ctx context.Context) error {
		c, err := gateway.New(gateway.Config{Inventory: hosts.New()}).Connect(ctx, "localhost", "")
		if err != nil {
			return err
		}
		c.Host, c.Transport = hosts.Host{Name: "web1"}, mute{c.Transport}
		_, err = Open(ctx, c)
		return err
	}
	shell := func(ctx context.Context) error {
		_, err := openShell(ctx, mute{}.Pipe, greeting)
		return err
	}
	for _, test := range []struct {
		name   string
		open   func(context.Context) error
		limit  time.Duration // the caller's own
		want   time.Duration
		reason error
		code   string
	}{
		{"sftp", sftp, time.Hour, greeting, errSilent, "file.no_subsystem"},
		{"shell", shell, time.Hour, greeting, errNoShell, "internal"},
		{"sftp, caller's end", sftp, time.Second, time.Second, context.DeadlineExceeded, "cmd.interrupted"},
		{"shell, caller's end", shell, time.Second, time.Second, context.DeadlineExceeded, "cmd.interrupted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), test.limit)
				defer cancel()
				begun := time.Now()
				err := test.open(ctx)
				if took := time.Since(begun); took != test.want {
					t.Errorf("it took %v, want %v", took, test.want)
				}
				if !errors.Is(err, test.reason) || gateway.Code(err) != test.code {
					t.Errorf("%v (%s), want %v (%s)", err, gateway.Code(err), test.reason, test.code)
				}
			})
		})
	}
}

// TestHashesWithoutGreeting: a shell that says nothing is waited for less where sftp does
// without it.
func TestHashesWithoutGreeting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := here(t)
		c.Host, c.Transport = hosts.Host{Name: "web1"}, polite{mute{c.Transport}}
		m, err := Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		begun := time.Now()
		if err := m.Settle(t.Context(), "/"); err != nil || time.Since(begun) != hashless {
			t.Errorf("Settle = %v after %v, want %v", err, time.Since(begun), hashless)
		}
	})
}
