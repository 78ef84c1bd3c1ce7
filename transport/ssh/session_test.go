package ssh_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gateway/internal/netsim"
	"gateway/internal/sshdtest"
	"gateway/transport"
	"gateway/transport/ssh"
)

func terminal(t testing.TB, tr *ssh.Transport, command string, options transport.TerminalOptions) transport.Terminal {
	t.Helper()
	term, err := tr.Terminal(t.Context(), command, options)
	if err != nil {
		t.Fatalf("Terminal(%q) = %v", command, err)
	}
	t.Cleanup(func() { term.Close() })
	return term
}

func TestSecondConnection(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{Config: []string{"MaxSessions 2"}})
	p := netsim.Start(t, s.Addr, 0)
	tr := dial(t, behind(p, s))
	for range 5 { // nobody told the client about MaxSessions
		term := terminal(t, tr, "echo up; exec cat", transport.TerminalOptions{})
		if _, err := io.ReadFull(term, make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
	}
	if p.Conns() != 3 {
		t.Errorf("%d connections for 5 programs, want 3", p.Conns())
	}
}

func TestSpareChannels(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	p := netsim.Start(t, s.Addr, 0)
	tr := dial(t, behind(p, s))
	var opening sync.WaitGroup
	for range 8 {
		opening.Go(func() { terminal(t, tr, "exec cat", transport.TerminalOptions{}) })
	}
	opening.Wait()
	for _, open := range []func() (*transport.Pipe, error){
		func() (*transport.Pipe, error) { return tr.Subsystem(t.Context(), "sftp") },
		func() (*transport.Pipe, error) { return tr.Control(t.Context(), "echo control") },
	} {
		pipe, err := open()
		if err != nil {
			t.Fatal(err)
		}
		defer pipe.Close()
	}
	if p.Conns() != 1 {
		t.Errorf("%d connections, want 1", p.Conns())
	}
	terminal(t, tr, "exec cat", transport.TerminalOptions{})
	if p.Conns() != 2 {
		t.Errorf("%d connections, want 2", p.Conns())
	}
	p.Close()
}

func TestSessionLimit(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{Config: []string{"MaxSessions 0"}})
	_, err := dial(t, config(s)).Pipe(t.Context(), "true")
	wantCode(t, err, "session.limit", "web1")
}

func TestSecondConnectionRefused(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{Config: []string{"MaxSessions 1"}})
	var seen atomic.Int32
	c := config(s)
	c.Port = listen(t, func(conn net.Conn) {
		if seen.Add(1) > 1 {
			return
		}
		far, err := net.Dial("tcp", s.Addr)
		if err != nil {
			t.Error(err)
			return
		}
		go func() {
			_, _ = io.Copy(far, conn) // ends with the client
			far.Close()
		}()
		_, _ = io.Copy(conn, far)
	}).Port
	tr := dial(t, c)
	terminal(t, tr, "exec cat", transport.TerminalOptions{})
	_, err := tr.Pipe(t.Context(), "true")
	wantCode(t, err, "session.limit", "closed by the server")
	tr.Close()
}

// TestCloseUnread: nobody has to read what a program said for the transport to
// end, nor after the link broke.
func TestCloseUnread(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	p := netsim.Start(t, s.Addr, 0)
	tr := dial(t, behind(p, s))
	for range 2 {
		pipe, err := tr.Pipe(t.Context(), "echo up; head -c 10000000 /dev/zero; exec cat")
		if err != nil {
			t.Fatal(err)
		}
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
	terminal(t, tr, "yes", transport.TerminalOptions{})
	within(t, patience, "Close", func() { tr.Close() })
}

func TestThrottled(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{Config: []string{"MaxStartups 2:50:4"}})
	var dialling sync.WaitGroup
	for range 30 {
		dialling.Go(func() {
			tr, err := ssh.Dial(t.Context(), config(s))
			if err != nil {
				t.Errorf("Dial = %v", err)
				return
			}
			tr.Close()
		})
	}
	dialling.Wait()
	t.Logf("%d turned away", strings.Count(s.Log(), "drop connection"))
}

func TestNoTerminal(t *testing.T) {
	for name, options := range map[string]sshdtest.Options{
		"PermitTTY no": {Config: []string{"PermitTTY no"}},
		"restrict":     {AuthorizedOptions: "restrict"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := dial(t, config(sshdtest.Start(t, options)))
			term := terminal(t, tr, "test -t 0 || echo none; echo err >&2; exit 4", transport.TerminalOptions{})
			if got := read(t, term); !strings.Contains(got, "none\n") || !strings.Contains(got, "err\n") {
				t.Errorf("output = %q, want none and err", got)
			}
			if exit, err := term.Wait(); exit.Code != 4 || err != nil {
				t.Errorf("Wait = %+v, %v", exit, err)
			}
			loud := terminal(t, tr, "head -c 8000000 /dev/zero >&2; echo done", transport.TerminalOptions{})
			if got := len(read(t, loud)); got != 8000005 {
				t.Errorf("%d bytes, want 8000005", got)
			}
			_, err := tr.Terminal(t.Context(), "", transport.TerminalOptions{Interactive: true})
			wantCode(t, err, "session.pty_refused", "web1")
		})
	}
}

func TestDrivenShells(t *testing.T) {
	tr := dial(t, config(sshdtest.Start(t, sshdtest.Options{})))
	for _, shell := range []string{"bash --norc -i", "bash --norc --noediting -i", "dash -i"} {
		t.Run(shell, func(t *testing.T) {
			program, _, _ := strings.Cut(shell, " ")
			if _, err := exec.LookPath(program); err != nil {
				t.Skip(err)
			}
			term := terminal(t, tr, "PS1= ENV= exec "+shell, transport.TerminalOptions{})
			if _, err := io.WriteString(term, "echo 'a\tb'; echo \"$TERM\"; exit 3\n"); err != nil {
				t.Fatal(err)
			}
			got := read(t, term)
			if strings.Contains(got, "\r") || strings.Contains(got, "exit 3") || !strings.Contains(got, "\ndumb\n") {
				t.Errorf("output = %q, want no echo and no carriage return", got)
			}
			if exit, err := term.Wait(); exit.Code != 3 || err != nil {
				t.Errorf("Wait = %+v, %v", exit, err)
			}
		})
	}
}

// TestRekey: the keys are renewed in mid-session without anyone being asked
// about the host key again.
func TestRekey(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{Config: []string{"RekeyLimit 1M"}})
	var asked atomic.Int32
	c := config(s)
	file := filepath.Join(t.TempDir(), "known_hosts")
	c.HostKeys = &ssh.HostKeys{
		Name: "web1", Addr: s.Host, Port: s.Port, Write: file, Policy: ssh.Ask,
		Ask: func(context.Context, ssh.HostKeyQuestion) (bool, error) { asked.Add(1); return true, nil },
	}
	tr := dial(t, c)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := len(output(t, tr, "head -c 20000000 /dev/zero")); got != 20000000 {
		t.Errorf("%d bytes, want 20000000", got)
	}
	if asked.Load() != 1 {
		t.Errorf("asked %d times, want once", asked.Load())
	}
}

func TestForcedCommand(t *testing.T) {
	tr := dial(t, config(sshdtest.Start(t, sshdtest.Options{Config: []string{"ForceCommand echo forced"}})))
	if got := output(t, tr, "echo mine"); got != "forced\n" {
		t.Errorf("output = %q", got)
	}
}

func TestSubsystem(t *testing.T) {
	t.Run("sftp", func(t *testing.T) {
		tr := dial(t, config(sshdtest.Start(t, sshdtest.Options{})))
		pipe, err := tr.Subsystem(t.Context(), "sftp")
		if err != nil {
			t.Fatal(err)
		}
		// SSH_FXP_INIT, version 3; the answer is SSH_FXP_VERSION.
		if _, err := pipe.Stdin.Write([]byte{0, 0, 0, 5, 1, 0, 0, 0, 3}); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 5)
		if _, err := io.ReadFull(pipe.Stdout, answer); err != nil || answer[4] != 2 {
			t.Errorf("answer = %v, %v", answer, err)
		}
		pipe.Close()
	})
	t.Run("none", func(t *testing.T) {
		_, err := dial(t, config(sshdtest.Start(t, sshdtest.Options{NoSftp: true}))).Subsystem(t.Context(), "sftp")
		wantCode(t, err, "file.no_subsystem", "web1")
	})
}

func TestDropbear(t *testing.T) {
	s := sshdtest.StartDropbear(t, sshdtest.Options{})
	tr := dial(t, config(s))
	pipe, err := tr.Pipe(t.Context(), "cat; echo err >&2; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(pipe.Stdin, "in\n"); err != nil {
		t.Fatal(err)
	}
	pipe.Stdin.Close()
	if got := read(t, pipe.Stdout) + read(t, pipe.Stderr); got != "in\nerr\n" {
		t.Errorf("output = %q", got)
	}
	if exit, err := pipe.Wait(); exit.Code != 3 || err != nil {
		t.Errorf("Wait = %+v, %v", exit, err)
	}
	term := terminal(t, tr, "tty >/dev/null && echo yes", transport.TerminalOptions{})
	if got := read(t, term); got != "yes\n" {
		t.Errorf("output = %q", got)
	}
}

func TestLinkLost(t *testing.T) {
	s := sshdtest.Start(t, sshdtest.Options{})
	for _, how := range []netsim.How{netsim.RST, netsim.FIN} {
		p := netsim.Start(t, s.Addr, 0)
		tr := dial(t, behind(p, s))
		term := terminal(t, tr, "echo up; exec cat", transport.TerminalOptions{})
		pipe, err := tr.Pipe(t.Context(), "echo up; exec cat")
		if err != nil {
			t.Fatal(err)
		}
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
	pipe, err := tr.Pipe(t.Context(), "kill -9 $PPID; exec sleep 1000")
	if err != nil {
		t.Fatal(err)
	}
	_, err = pipe.Wait()
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
	pipe, err := tr.Pipe(t.Context(), "exec cat")
	if err != nil {
		t.Fatal(err)
	}
	p.Stall()
	within(t, patience, "the end of a silent link", func() {
		_, err := pipe.Wait()
		wantCode(t, err, "link.lost", "no sign of life for 150ms")
	})
}

// TestRoundTrips counts what opening costs: one round trip for the channel, one
// for the first output; both channels of a session at once cost no more.
func TestRoundTrips(t *testing.T) {
	const delay = 50 * time.Millisecond
	s := sshdtest.Start(t, sshdtest.Options{})
	p := netsim.Start(t, s.Addr, 0)
	tr := dial(t, behind(p, s))
	output(t, tr, "true")
	p.SetDelay(delay)
	trips := func(f func()) float64 {
		start := time.Now()
		f()
		return float64(time.Since(start)) / float64(2*delay)
	}
	first := func(r io.Reader) {
		if _, err := r.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
	}
	got := trips(func() { first(terminal(t, tr, "echo up; exec cat", transport.TerminalOptions{})) })
	if got > 2.8 {
		t.Errorf("terminal: %.1f round trips to the first output, want 2", got)
	}
	t.Logf("terminal: %.2f round trips", got)
	got = trips(func() {
		var both sync.WaitGroup
		both.Go(func() { first(terminal(t, tr, "echo up; exec cat", transport.TerminalOptions{})) })
		both.Go(func() {
			pipe, err := tr.Pipe(t.Context(), "echo up; exec cat")
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { pipe.Close() })
			first(pipe.Stdout)
		})
		both.Wait()
	})
	if got > 2.8 {
		t.Errorf("terminal and pipe: %.1f round trips to the first output, want 2", got)
	}
	t.Logf("terminal and pipe: %.2f round trips", got)
}

func BenchmarkColdCommand(b *testing.B) {
	s := sshdtest.Start(b, sshdtest.Options{})
	for b.Loop() {
		tr := dial(b, config(s))
		output(b, tr, "true")
		tr.Close()
	}
}

func BenchmarkEcho(b *testing.B) {
	tr := dial(b, config(sshdtest.Start(b, sshdtest.Options{})))
	pipe, err := tr.Pipe(b.Context(), "exec cat")
	if err != nil {
		b.Fatal(err)
	}
	line := []byte("echo hi\n")
	for b.Loop() {
		if _, err := pipe.Stdin.Write(line); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(pipe.Stdout, line); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOutput(b *testing.B) {
	const size = 64 << 20
	tr := dial(b, config(sshdtest.Start(b, sshdtest.Options{})))
	b.SetBytes(size)
	buf := make([]byte, 64<<10)
	for b.Loop() {
		pipe, err := tr.Pipe(b.Context(), "head -c 67108864 /dev/zero")
		if err != nil {
			b.Fatal(err)
		}
		if n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{pipe.Stdout}, buf); n != size || err != nil {
			b.Fatal(n, err)
		}
		pipe.Close()
	}
}
