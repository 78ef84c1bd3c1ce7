package transfer

import (
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
	near, far := net.Pipe()
	go drain(far) // ends with the pipe
	ends, end := io.Pipe()
	end.Close()
	return &transport.Pipe{Stdin: near, Stdout: near, Stderr: ends, Program: program{near}}, nil
}

func (m mute) Subsystem(ctx context.Context, name string) (*transport.Pipe, error) {
	return m.Pipe(ctx, name)
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
		_, err := openShell(ctx, mute{}.Pipe)
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
