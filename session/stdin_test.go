package session_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gateway/internal/sshdtest"
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

// TestStdinBehindALoginShellThatTalks: much of it on stderr. It takes its time, too, before it runs
// what it is told to.
func TestStdinBehindALoginShellThatTalks(t *testing.T) {
	t.Parallel()
	tr := local.New(local.Config{Env: []string{"HOME=" + t.TempDir()}})
	talks := func(command string) string {
		return "echo welcome; head -c 1000000 /dev/zero >&2; printf 'you have mail '; sleep 0.2; " + command
	}
	s := openOn(t, altered{Transport: tr, onPipe: talks}, session.Config{Shell: "bash"})
	want(t, runCommand(t, s, session.Command{Text: "cat", Stdin: strings.NewReader("in")}), 0, "in", "")
}

// TestStdinThatCanNotBeFilled: where there is no process for one more program, the error has what
// the machine says.
func TestStdinThatCanNotBeFilled(t *testing.T) {
	t.Parallel()
	crowded := func(command string) string {
		if fifoOf(command) != "" {
			return "echo sh: Cannot fork >&2; exit 2"
		}
		return command
	}
	s := openOn(t, altered{Transport: local.New(local.Config{}), onPipe: crowded}, session.Config{Shell: "bash"})
	r, err := s.Run(t.Context(), session.Command{Text: "cat", Stdin: strings.NewReader("in")})
	if r.Verdict != session.NotStarted || err == nil || !strings.Contains(err.Error(), "Cannot fork") {
		t.Errorf("got %s, %v, want not_started and the reason", r.Verdict, err)
	}
	want(t, run(t, s, "echo on"), 0, "on\n", "")
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
	s := openOn(t, machine, session.Config{Shell: "bash"})
	want(t, runCommand(t, s, session.Command{Text: "cat", Stdin: strings.NewReader("all of it\n")}), 0, "all of it\n", "")
	if machine.lost == nil {
		t.Fatal("no feeder was lost")
	}
}

// removing is the output of a feeder whose FIFO somebody removes once it is ready.
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
			s := openOn(t, altered{Transport: local.New(local.Config{}), pipe: func(command string, p *transport.Pipe) {
				if fifo := fifoOf(command); fifo != "" {
					eventually(t, "the FIFO is there", func() bool { _, err := os.Stat(fifo); return err == nil })
					p.Stdout = removing{p.Stdout, fifo}
				}
			}}, session.Config{Shell: shell})
			r, err := s.Run(t.Context(), session.Command{Text: "echo ran", Stdin: strings.NewReader("x")})
			if r.Verdict != session.NotStarted || err == nil || !strings.Contains(err.Error(), "stdin") || len(r.Stdout) > 0 {
				t.Errorf("got %s %d, stdout %q, terminal %q, %v; want not_started, for its stdin", r.Verdict, r.ExitCode, r.Stdout, r.Terminal, err)
			}
			want(t, run(t, s, "echo on"), 0, "on\n", "")
		})
	}
}

// broken is an input that ends with an error, behind what it has.
type broken struct{ has io.Reader }

var errBroken = errors.New("input/output error")

func (b broken) Read(p []byte) (int, error) {
	n, err := b.has.Read(p)
	if err != nil {
		err = errBroken
	}
	return n, err
}

// TestStdinThatIsCut: a command that took a part of its input for the whole has its own
// status, and an error. One that reads no more than it wants to has none.
func TestStdinThatIsCut(t *testing.T) {
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			s := open(t, session.Config{Shell: shell})
			for _, text := range []string{"cat; (exit 3)", "cat; exit 3"} {
				r, err := s.Run(t.Context(), session.Command{Text: text, Stdin: broken{strings.NewReader("half\n")}})
				if e := new(transport.Error); !errors.As(err, &e) || e.Code != session.InputFailed || !errors.Is(err, errBroken) || r.Verdict != session.Exited || r.ExitCode != 3 || string(r.Stdout) != "half\n" {
					t.Errorf("%s: got %s %d, stdout %q, %v; want 3, and an error for the other half", text, r.Verdict, r.ExitCode, r.Stdout, err)
				}
			}
			s = open(t, session.Config{Shell: shell})
			for name, has := range map[string]string{"short": "one\n", "long": "one\n" + strings.Repeat("x", 1<<20), "endless": "one\n"} {
				for text, wanted := range map[string]string{"head -n 1": "one\n", "true": ""} {
					input := io.Reader(strings.NewReader(has))
					if name == "endless" {
						unfinished, w := io.Pipe()
						defer w.Close()
						input = io.MultiReader(input, unfinished)
					}
					begun := time.Now()
					want(t, runCommand(t, s, session.Command{Text: text, Stdin: input}), 0, wanted, "")
					if took := time.Since(begun); sshdtest.Over(t, took, 3*time.Second) {
						t.Errorf("%s, %s: took %v", text, name, took)
					}
				}
			}
		})
	}
}

// fragile is a feeder whose link can be cut.
type fragile struct {
	transport.Program
	lost atomic.Bool
}

// Wait implements [transport.Program].
func (f *fragile) Wait() (transport.Exit, error) {
	exit, err := f.Program.Wait()
	if f.lost.Load() {
		return transport.Exit{}, fmt.Errorf("cut: %w", transport.ErrLost)
	}
	return exit, err
}

// TestStdinWhoseFeederDies: what copies the input on the machine is killed, or the link
// to it is lost, before the input has ended.
func TestStdinWhoseFeederDies(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("lost=%t", lost), func(t *testing.T) {
			pidFile, feeder := t.TempDir()+"/pid", make(chan *fragile, 1)
			s := openOn(t, altered{
				Transport: local.New(local.Config{}),
				onPipe: func(command string) string {
					if fifoOf(command) != "" {
						command = "echo $$ >" + pidFile + "; " + command
					}
					return command
				},
				pipe: func(command string, p *transport.Pipe) {
					if fifoOf(command) != "" {
						f := &fragile{Program: p.Program}
						p.Program = f
						feeder <- f
					}
				},
			}, session.Config{Shell: "bash"})
			in, w := io.Pipe()
			defer w.Close()
			var once sync.Once
			r, err := s.Run(t.Context(), session.Command{Text: "head -c 5; wc -c", Stdin: in, Started: func() {
				go func() { _, _ = w.Write([]byte("some of it\n")) }() // ends with the pipe
			}, Output: func(session.Stream, []byte) {
				once.Do(func() { // it has come through
					f := <-feeder
					if lost {
						f.lost.Store(true)
						f.Close()
						return
					}
					text, err := os.ReadFile(pidFile)
					if err != nil {
						t.Error(err)
						return
					}
					pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
					if err == nil {
						err = syscall.Kill(pid, syscall.SIGKILL)
					}
					if err != nil {
						t.Error(err)
					}
				})
			}})
			e := new(transport.Error)
			if !errors.As(err, &e) || e.Code != session.InputFailed || errors.Is(err, transport.ErrLost) != lost || r.Verdict != session.Exited || r.ExitCode != 0 {
				t.Errorf("got %s %d, stdout %q, %v; want 0, and an error for the rest", r.Verdict, r.ExitCode, r.Stdout, err)
			}
		})
	}
}

// TestStdinThatIsGivenUp: a command that its caller gives up while its stdin is made says
// so, and not what was missing.
func TestStdinThatIsGivenUp(t *testing.T) {
	t.Parallel()
	why := errors.New("told to stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := openOn(t, altered{
		Transport: local.New(local.Config{}),
		onPipe: func(command string) string {
			if fifoOf(command) != "" {
				return "cat" // which never says that it is ready
			}
			return command
		},
		pipe: func(command string, _ *transport.Pipe) {
			if fifoOf(command) != "" {
				cancel(why)
			}
		},
	}, session.Config{})
	r, err := s.Run(ctx, session.Command{Text: "cat", Stdin: strings.NewReader("x")})
	if r.Verdict != session.NotStarted || !errors.Is(err, why) || !strings.Contains(err.Error(), why.Error()) {
		t.Errorf("got %s, %v; want not_started, because it was %v", r.Verdict, err, why)
	}
	want(t, run(t, s, "echo on"), 0, "on\n", "")
}

func TestStdinIsExactAndEnds(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		all := make([]byte, 300_000)
		for i := range all {
			all[i] = byte(i * 7)
		}
		r := runCommand(t, s, session.Command{Text: "cat", Stdin: bytes.NewReader(all)})
		want(t, r, 0, string(all), "")
		want(t, runCommand(t, s, session.Command{Text: "head -c 3", Stdin: bytes.NewReader(all)}), 0, string(all[:3]), "")
		want(t, runCommand(t, s, session.Command{Text: "read a; read b; echo $b$a; cd /tmp", Stdin: strings.NewReader("1\n2\n")}), 0, "21\n", "")
		want(t, runCommand(t, s, session.Command{Text: "echo unread", Stdin: bytes.NewReader(all)}), 0, "unread\n", "")
		want(t, runCommand(t, s, session.Command{Text: "cat", Stdin: strings.NewReader("")}), 0, "", "")
		want(t, run(t, s, "pwd"), 0, "/tmp\n", "")
	})
}

// TestStdinAfterStdin: what fed one command is not yet gone when the next one's
// is fed.
func TestStdinAfterStdin(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		for range 20 {
			want(t, runCommand(t, s, session.Command{Text: "echo unread", Stdin: strings.NewReader("x")}), 0, "unread\n", "")
			want(t, runCommand(t, s, session.Command{Text: "cat", Stdin: strings.NewReader("read\n")}), 0, "read\n", "")
		}
	})
}
