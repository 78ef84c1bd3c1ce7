package session_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// stubborn is a machine whose pipes are of no use once hold was called. As over SSH, a
// write that nobody takes holds up the end of the stdin until the pipe is closed.
type stubborn struct {
	altered
	held chan struct{}
	hold func()
	// immortal programs have no end, not even behind Close, until it is closed.
	immortal chan struct{}
	stuck    chan struct{} // closed once a write is
}

func newStubborn(t *testing.T) *stubborn {
	tr := local.New(local.Config{Env: []string{"HOME=" + t.TempDir()}})
	t.Cleanup(func() { tr.Close() })
	held := make(chan struct{})
	m := &stubborn{held: held, hold: sync.OnceFunc(func() { close(held) }), stuck: make(chan struct{})}
	m.altered = altered{Transport: tr, pipe: func(_ string, p *transport.Pipe) {
		held := &heldProgram{Program: p.Program, immortal: m.immortal, closed: make(chan struct{})}
		p.Stdin, p.Program = &heldStdin{WriteCloser: p.Stdin, machine: m, program: held}, held
	}}
	return m
}

type heldStdin struct {
	io.WriteCloser
	machine *stubborn
	program *heldProgram
	mu      sync.Mutex
}

func (s *heldStdin) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.machine.held:
		close(s.machine.stuck)
		<-s.program.closed
		return 0, io.ErrClosedPipe
	default:
		return s.WriteCloser.Write(b)
	}
}

func (s *heldStdin) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.WriteCloser.Close()
}

type heldProgram struct {
	transport.Program
	immortal  chan struct{}
	closed    chan struct{}
	closeOnce sync.Once
}

func (p *heldProgram) Close() error {
	p.closeOnce.Do(func() { close(p.closed) })
	return p.Program.Close()
}

func (p *heldProgram) Wait() (transport.Exit, error) {
	if p.immortal != nil {
		<-p.immortal
	}
	return p.Program.Wait()
}

func (p *heldProgram) Done() <-chan struct{} {
	if p.immortal != nil {
		return p.immortal
	}
	return p.Program.Done()
}

func closeInTime(t *testing.T, s *session.Session) {
	t.Helper()
	closed := make(chan struct{})
	go func() {
		s.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Fatal("Close does not return")
	}
}

// TestCloseWithAnImmortalKeeper: not even KILL ends a process that waits for a disk.
func TestCloseWithAnImmortalKeeper(t *testing.T) {
	t.Parallel()
	machine := newStubborn(t)
	machine.immortal = make(chan struct{})
	s, err := session.Open(t.Context(), machine, session.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer close(machine.immortal)
	closeInTime(t, s)
}

// TestCloseWhileAnUploadIsStuck: the keeper takes nothing any more, and so hears of the
// session's end by its own only.
func TestCloseWhileAnUploadIsStuck(t *testing.T) {
	t.Parallel()
	machine := newStubborn(t)
	s, err := session.Open(t.Context(), machine, session.Config{})
	if err != nil {
		t.Fatal(err)
	}
	machine.hold()
	ran := make(chan error, 1)
	go func() {
		r, err := s.Run(context.Background(), session.Command{Text: "echo " + strings.Repeat("x", 100000)})
		if r.Verdict != session.NotStarted {
			t.Errorf("verdict = %s, want %s", r.Verdict, session.NotStarted)
		}
		ran <- err
	}()
	<-machine.stuck
	closeInTime(t, s)
	if err := <-ran; !errors.Is(err, session.ErrClosed) {
		t.Errorf("Run = %v, want %v", err, session.ErrClosed)
	}
	eventually(t, "no process left", func() bool { return len(processes(s.ID())) == 0 })
}

// TestCloseWithoutFractionsOfASecond: where sleep(1) takes whole seconds only, as OpenWrt's
// does, the keeper waits for a shell that takes its time to end, too.
func TestCloseWithoutFractionsOfASecond(t *testing.T) {
	t.Parallel()
	bin, dir := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(bin, "sleep"), []byte("#!/bin/sh\ncase $1 in *.*) exit 1;; esac\nexec /bin/sleep \"$1\"\n"), 0o700))
	s := openOn(t, local.New(local.Config{Env: []string{"HOME=" + t.TempDir(), "PATH=" + bin + ":" + os.Getenv("PATH")}}), session.Config{Shell: "dash"})
	run(t, s, "cd "+dir+"; { : >up; while [ -e up ]; do /bin/sleep 0.05; done; : >done; } & while ! [ -e up ]; do /bin/sleep 0.01; done; trap '/bin/sleep 0.5; : >trapped' EXIT")
	s.Close()
	os.Remove(filepath.Join(dir, "up"))
	for _, left := range []string{"trapped", "done"} {
		eventually(t, left+" is there", func() bool { _, err := os.Stat(filepath.Join(dir, left)); return err == nil })
	}
	eventually(t, "no process left", func() bool { return len(processes(s.ID())) == 0 })
}

// muted is the stdout of a pipe from which nothing comes once hold is closed.
type muted struct {
	io.Reader
	program transport.Program
	hold    chan struct{}
}

func (s muted) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	select {
	case <-s.hold:
		<-s.program.Done()
		return 0, io.EOF
	default:
		return n, err
	}
}

// TestCloseWhileOutputIsUnderWay: a shell has ended by itself, and who closes the session
// does not wait for what it has said. That this is not all is told.
func TestCloseWhileOutputIsUnderWay(t *testing.T) {
	t.Parallel()
	tr := local.New(local.Config{Env: []string{"HOME=" + t.TempDir()}})
	hold := make(chan struct{})
	s := openOn(t, altered{Transport: tr, pipe: func(_ string, p *transport.Pipe) {
		p.Stdout = muted{p.Stdout, p.Program, hold}
	}}, session.Config{})
	close(hold)
	ran := make(chan session.Result)
	go func() {
		r, err := s.Run(t.Context(), session.Command{Text: "echo lost; exit 3"})
		if err != nil {
			t.Errorf("Run = %v", err)
		}
		ran <- r
	}()
	<-s.Done()
	s.Close()
	if r := <-ran; r.Verdict != session.Exited || r.ExitCode != 3 || !r.Truncated || !r.Cut {
		t.Errorf("got %+v, want status 3, and that its output is not all", r)
	}
}

// TestRunWhileClosing: who closes a session is no other command, which one could wait for.
func TestRunWhileClosing(t *testing.T) {
	t.Parallel()
	exits := filepath.Join(t.TempDir(), "exits")
	s := open(t, session.Config{})
	run(t, s, "trap ': >"+exits+"; while [ -e "+exits+" ]; do sleep 0.01; done' EXIT")
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	eventually(t, "the shell exits", func() bool { _, err := os.Stat(exits); return err == nil })
	if r, err := s.Run(t.Context(), session.Command{Text: "true"}); r.Verdict != session.NotStarted || !errors.Is(err, session.ErrClosed) {
		t.Errorf("Run = %s, %v, want %s, %v", r.Verdict, err, session.NotStarted, session.ErrClosed)
	}
	os.Remove(exits)
	<-closed
}

// TestCloseLeavesJobs: the end of a session in order leaves the jobs that run,
// and no job stopped, whether it is in the shell's process group or in its own.
func TestCloseLeavesJobs(t *testing.T) {
	t.Parallel()
	state := func(pid string) string {
		b, _ := os.ReadFile("/proc/" + pid + "/stat")
		_, rest, _ := strings.Cut(string(b), ") ")
		state, _, _ := strings.Cut(rest, " ")
		return state
	}
	t.Run("running", func(t *testing.T) { // others hang their jobs up, as at any logout
		s := open(t, session.Config{Shell: "dash"})
		job := strings.TrimSpace(string(run(t, s, "sleep 1000 >/dev/null 2>&1 & echo $!").Stdout))
		s.Close()
		eventually(t, "the shell has ended", func() bool { return len(processes(s.ID())) == 1 })
		if got := state(job); got != "S" && got != "R" {
			t.Errorf("the job that runs is %q", got)
		}
		exec.Command("kill", job).Run()
	})
	eachShell(t, func(t *testing.T, s *session.Session) {
		r := run(t, s, "for m in + -; do set ${m}m; sleep 1000 >/dev/null 2>&1 & kill -STOP $!; echo $!; done 2>/dev/null")
		jobs := strings.Fields(string(r.Stdout))
		for _, job := range jobs {
			eventually(t, "it is stopped", func() bool { return state(job) == "T" })
		}
		s.Close()
		for _, job := range jobs {
			eventually(t, "it is not stopped", func() bool { return state(job) != "T" })
		}
		exec.Command("kill", append([]string{"-9"}, jobs...)...).Run() // a shell may have let them go on
	})
}

// TestCloseLeavesSubshells: what holds the terminal goes on, as after a logout of
// these shells. bash and ksh93 control no jobs, which are hung up with them.
func TestCloseLeavesSubshells(t *testing.T) {
	for _, shell := range []string{"dash", "zsh", "mksh", "yash", "busybox ash"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, session.Config{Shell: shell})
			run(t, s, "cd "+dir+"; { : >up; while [ -e up ]; do sleep 0.05; done; : >done; } & while ! [ -e up ]; do sleep 0.01; done")
			s.Close()
			os.Remove(filepath.Join(dir, "up"))
			eventually(t, "the job has ended by itself", func() bool { _, err := os.Stat(filepath.Join(dir, "done")); return err == nil })
		})
	}
}
