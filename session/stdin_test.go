package session_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// losing is a machine that ends the channel of the first feeder as soon as it is
// open, as dropbear does now and then. What runs there notices that late: when
// the next one is ready.
type losing struct {
	transport.Transport
	lost *transport.Pipe
}

func (l *losing) Pipe(ctx context.Context, command string) (*transport.Pipe, error) {
	pipe, err := l.Transport.Pipe(ctx, command)
	if err != nil || fifoOf(command) == "" {
		return pipe, err
	}
	stdout := bufio.NewReader(pipe.Stdout)
	ready, err := stdout.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if l.lost == nil {
		l.lost = pipe
		return &transport.Pipe{Stdin: discard{}, Stdout: strings.NewReader(""), Stderr: pipe.Stderr, Program: dead{pipe.Program}}, nil
	}
	l.lost.Stdin.Close()
	<-l.lost.Done()
	return &transport.Pipe{Stdin: pipe.Stdin, Stdout: io.MultiReader(strings.NewReader(ready), stdout), Stderr: pipe.Stderr, Program: pipe.Program}, nil
}

// fifoOf returns the FIFO of the feeder that a command starts.
func fifoOf(command string) string {
	if m := regexp.MustCompile(`f=(\S+/i[0-9a-f]+);`).FindStringSubmatch(command); m != nil {
		return m[1]
	}
	return ""
}

type discard struct{ io.Writer }

func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) Close() error                { return nil }

type dead struct{ transport.Program }

func (dead) Close() error { return nil }

// TestStdinBesideALostFeeder: what is left of a feeder whose channel has ended
// does not take the stdin of the one that stands in for it away.
func TestStdinBesideALostFeeder(t *testing.T) {
	machine := &losing{Transport: local.New(local.Config{})}
	s, err := session.Open(t.Context(), machine, session.Config{Shell: "bash"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want(t, runCommand(t, s, session.Command{Text: "cat", Stdin: strings.NewReader("all of it\n")}), 0, "all of it\n", "")
	if machine.lost == nil {
		t.Fatal("no feeder was lost")
	}
}

// tidy is a machine where somebody empties the directory for temporary files
// once a feeder is ready.
type tidy struct {
	transport.Transport
	t *testing.T
}

func (m tidy) Pipe(ctx context.Context, command string) (*transport.Pipe, error) {
	pipe, err := m.Transport.Pipe(ctx, command)
	fifo := fifoOf(command)
	if err != nil || fifo == "" {
		return pipe, err
	}
	eventually(m.t, "the FIFO is there", func() bool { _, err := os.Stat(fifo); return err == nil })
	return &transport.Pipe{Stdin: pipe.Stdin, Stdout: removing{pipe.Stdout, fifo}, Stderr: pipe.Stderr, Program: pipe.Program}, nil
}

type removing struct {
	io.Reader
	fifo string
}

func (r removing) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	os.Remove(r.fifo)
	return n, err
}

// TestStdinThatIsGone: a command whose stdin can't be opened has not run, and its
// result does not say that it exited.
func TestStdinThatIsGone(t *testing.T) {
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			s, err := session.Open(t.Context(), tidy{local.New(local.Config{}), t}, session.Config{Shell: shell})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			r, err := s.Run(t.Context(), session.Command{Text: "echo ran", Stdin: strings.NewReader("x")})
			if r.Verdict != session.NotStarted || err == nil || !strings.Contains(err.Error(), "stdin") || len(r.Stdout) > 0 {
				t.Errorf("got %s %d, stdout %q, terminal %q, %v; want not_started, for its stdin", r.Verdict, r.ExitCode, r.Stdout, r.Terminal, err)
			}
			want(t, run(t, s, "echo on"), 0, "on\n", "")
		})
	}
}
