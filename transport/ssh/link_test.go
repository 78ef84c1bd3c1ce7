package ssh_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
	"gateway/transport"
	"gateway/transport/ssh"
)

// TestCloseUnread: nobody has to read what a program said for the transport to
// end, nor after the link broke.
func TestCloseUnread(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	p := netsim.Start(t, s.Addr, 0)
	tr := dial(t, behind(p, s))
	for range 2 {
		pipe := pipe(t, tr, "echo up; head -c 10000000 /dev/zero; exec cat")
		if _, err := pipe.Stdout.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		p.Cut(netsim.RST)
		if _, err := pipe.Wait(); !errors.Is(err, transport.ErrLost) {
			t.Errorf("Wait = %v, want %v", err, transport.ErrLost)
		}
		if _, err := pipe.Stdout.Read(make([]byte, 1)); err != nil {
			t.Errorf("what came before the cut: %v", err)
		}
	}
	terminal(t, tr, "yes")
	within(t, "Close", func() { tr.Close() })
}

// TestCloseWhileDelivering: whoever takes what a program says may take as long as
// they like for it. The transport ends all the same, and they are told later.
func TestCloseWhileDelivering(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	for what, open := range map[string]func(*ssh.Transport) io.Reader{
		"pipe": func(tr *ssh.Transport) io.Reader {
			pipe := pipe(t, tr, "yes")
			return pipe.Stdout
		},
		"terminal": func(tr *ssh.Transport) io.Reader {
			return terminal(t, tr, "yes")
		},
	} {
		t.Run(what, func(t *testing.T) {
			tr := dial(t, config(s))
			begun, held, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			begin, release := sync.OnceFunc(func() { close(begun) }), sync.OnceFunc(func() { close(held) })
			defer release()
			open(tr).(transport.Deliverer).Deliver(func([]byte) {
				begin()
				<-held
			}, func(err error) { ended <- err })
			<-begun
			within(t, "Close", func() { tr.Close() })
			release()
			within(t, "Deliver", func() {
				if err := <-ended; !errors.Is(err, transport.ErrClosed) {
					t.Errorf("Deliver = %v, want %v", err, transport.ErrClosed)
				}
			})
		})
	}
}

// TestRekey: the keys are renewed in mid-session without anyone being asked
// about the host key again.
func TestRekey(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t, sshdtest.Options{Config: []string{"RekeyLimit 1M"}})
	var asked atomic.Int32
	c := config(s)
	file := filepath.Join(t.TempDir(), "known_hosts")
	c.HostKeys = &ssh.HostKeys{
		Name: "web1", Addr: s.Host, Port: s.Port, Write: file, Policy: ssh.Ask,
		Ask: func(context.Context, ssh.HostKeyQuestion) (bool, error) { asked.Add(1); return true, nil },
	}
	tr := dial(t, c)
	must(t, os.Remove(file))
	if got := len(output(t, tr, "head -c 20000000 /dev/zero")); got != 20000000 {
		t.Errorf("%d bytes, want 20000000", got)
	}
	if asked.Load() != 1 {
		t.Errorf("asked %d times, want once", asked.Load())
	}
}

func TestLinkLost(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t, sshdtest.Options{})
	for _, how := range []netsim.How{netsim.RST, netsim.FIN} {
		p := netsim.Start(t, s.Addr, 0)
		tr := dial(t, behind(p, s))
		term := terminal(t, tr, "echo up; exec cat")
		pipe := pipe(t, tr, "echo up; exec cat")
		for _, r := range []io.Reader{term, pipe.Stdout} {
			if _, err := io.ReadFull(r, make([]byte, 3)); err != nil {
				t.Fatal(err)
			}
		}
		p.Cut(how)
		for _, test := range []struct { // reads first: they end when the cut is noticed
			what string
			call func() error
		}{
			{"terminal read", func() error { _, err := term.Read(make([]byte, 1)); return err }},
			{"terminal wait", func() error { _, err := term.Wait(); return err }},
			{"pipe read", func() error { _, err := pipe.Stdout.Read(make([]byte, 1)); return err }},
			{"pipe wait", func() error { _, err := pipe.Wait(); return err }},
			{"write", func() error { _, err := pipe.Stdin.Write([]byte("x")); return err }},
			{"resize", func() error { return term.Resize(transport.Size{}) }},
		} {
			if err := test.call(); !errors.Is(err, transport.ErrLost) {
				t.Errorf("%s after a cut = %v, want %v", test.what, err, transport.ErrLost)
			}
		}
		if got := output(t, tr, "echo again"); got != "again\n" {
			t.Errorf("dialled anew: %q", got)
		}
	}
}

// TestServerKilled: the server's process for the connection dies, and with it
// the status.
func TestServerKilled(t *testing.T) {
	tr := dial(t, config(sshdtest.Start(t, sshdtest.Options{})))
	pipe := pipe(t, tr, "kill -9 $PPID; exec sleep 1000")
	_, err := pipe.Wait()
	wantCode(t, err, "link.lost", "web1")
}

func TestKeepalive(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	p := netsim.Start(t, s.Addr, 0)
	c := behind(p, s)
	c.Keepalive = 50 * time.Millisecond
	tr := dial(t, c)
	if got := output(t, tr, "sleep 1; echo alive"); got != "alive\n" {
		t.Errorf("output = %q", got)
	}
	pipe := pipe(t, tr, "exec cat")
	p.Stall()
	within(t, "the end of a silent link", func() {
		_, err := pipe.Wait()
		wantCode(t, err, "link.lost", "no sign of life for 150ms")
	})
}
