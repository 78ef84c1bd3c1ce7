package session_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// sockets is a machine whose pipes are sockets, which nobody can open by name.
type sockets struct{ transport.Transport }

func (s sockets) Pipe(_ context.Context, command string) (*transport.Pipe, error) {
	var far, near [3]*os.File
	for i := range far {
		pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
		if err != nil {
			return nil, err
		}
		if err := syscall.SetNonblock(pair[0], false); err != nil {
			return nil, err
		}
		far[i], near[i] = os.NewFile(uintptr(pair[0]), "far"), os.NewFile(uintptr(pair[1]), "near")
	}
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = far[0], far[1], far[2]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err := cmd.Start()
	for _, f := range far {
		f.Close()
	}
	if err != nil {
		return nil, err
	}
	p := &socketProgram{transport.NewEnding(), cmd, near}
	go func() { // ends with the process, which Close kills
		cmd.Wait()
		exit := transport.Exit{}
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
			exit = transport.Exit{Code: 128 + int(status.Signal()), Signal: "KILL"}
		}
		p.Finish(exit, nil)
	}()
	return &transport.Pipe{Stdin: near[0], Stdout: near[1], Stderr: near[2], Program: p}, nil
}

type socketProgram struct {
	*transport.Ending
	cmd  *exec.Cmd
	near [3]*os.File
}

func (p *socketProgram) Close() error {
	for _, f := range p.near {
		f.Close()
	}
	select {
	case <-p.Done():
	case <-time.After(time.Second):
		p.cmd.Process.Kill()
	}
	<-p.Done()
	return nil
}

// withoutFIFOs is what a machine starts that has none.
func withoutFIFOs(command string) string { return strings.ReplaceAll(command, "mkfifo", "false") }

func eachFallback(t *testing.T, onPipe func(string) string, test func(*testing.T, *session.Session)) {
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			runtime := t.TempDir()
			s := openOn(t, altered{Transport: sockets{local.New(local.Config{Env: []string{"HOME=" + t.TempDir(), "XDG_RUNTIME_DIR=" + runtime}})}, onPipe: onPipe}, session.Config{Shell: shell})
			test(t, s)
		})
	}
}

func TestFIFOsWhereStreamsHaveNoName(t *testing.T) {
	t.Parallel()
	eachFallback(t, nil, func(t *testing.T, s *session.Session) {
		want(t, run(t, s, `printf 'out\000\377'; printf err >&2; cd /tmp; (exit 4)`), 4, "out\x00\xff", "err")
		want(t, runCommand(t, s, session.Command{Text: "wc -c | tr -d ' '; pwd", Stdin: strings.NewReader(strings.Repeat("x", 100_000))}), 0, "100000\n/tmp\n", "")
		want(t, run(t, s, "v='"+strings.Repeat("x", 50_000)+"'; echo ${#v}"), 0, "50000\n", "")
		if r := run(t, s, "(sleep 0.2; echo LATE) & echo now"); string(r.Stdout) != "now\n" {
			t.Errorf("got %q", r.Stdout)
		}
		// The shell may say that its job is done.
		if r := run(t, s, "echo mine; sleep 0.4"); string(r.Stdout) != "mine\n" {
			t.Errorf("got %q, want only the command's own", r.Stdout)
		}
		r, err := s.Run(t.Context(), session.Command{Text: "echo part; sleep 1000", Timeout: 200 * time.Millisecond})
		if r.Verdict != session.TimedOut || !errors.Is(err, context.DeadlineExceeded) || string(r.Stdout) != "part\n" {
			t.Errorf("got %s %q, %v", r.Verdict, r.Stdout, err)
		}
		if r := run(t, s, "pwd"); string(r.Stdout) != "/tmp\n" {
			t.Errorf("got %q", r.Stdout)
		}
	})
}

// TestKeeperOfFIFOsIsKilled: the shell waits for who reads its marks.
func TestKeeperOfFIFOsIsKilled(t *testing.T) {
	t.Parallel()
	eachFallback(t, nil, func(t *testing.T, s *session.Session) {
		for range 2 { // a typed frame, and a stored one
			r, err := s.Run(t.Context(), session.Command{
				Text:    `e=$(readlink /proc/$$/fd/2); read k <"${e%/*}/p"; set -- $k $(cat /proc/$k/task/$k/children); kill -9 "$@"; while [ -e /proc/$1/fd/0 -o -e /proc/$2/fd/0 -o -e /proc/$3/fd/0 ]; do :; done`,
				Timeout: 20 * time.Second,
			})
			if r.Signal == "PIPE" && r.Ended { // it has written them to nobody before
				return
			}
			if r.Verdict != session.Unknown || !errors.Is(err, session.ErrLost) || r.Ended {
				t.Errorf("got %s %d %q, ended %v, %v", r.Verdict, r.ExitCode, r.Stderr, r.Ended, err)
			}
			want(t, run(t, s, "echo on"), 0, "on\n", "")
		}
	})
}

// impoverished is a machine that has no FIFO any more once a session is open.
func impoverished(tr transport.Transport) altered {
	var opened atomic.Bool
	return altered{Transport: sockets{tr}, onPipe: func(command string) string {
		if opened.Swap(true) {
			return withoutFIFOs(command)
		}
		return command
	}}
}

// TestTerminalCarriesAllFromNowOn: the streams of a session are to be replaced, and
// the machine has no place for others.
func TestTerminalCarriesAllFromNowOn(t *testing.T) {
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			s := openOn(t, impoverished(local.New(local.Config{Env: []string{"HOME=" + t.TempDir(), "XDG_RUNTIME_DIR=" + t.TempDir()}})), session.Config{Shell: shell})
			r, err := s.Run(t.Context(), session.Command{Text: "echo part; sleep 1000", Timeout: 200 * time.Millisecond})
			if r.Verdict != session.TimedOut || r.Streams != session.Split || string(r.Stdout) != "part\n" {
				t.Errorf("got %s %s %q, %v", r.Verdict, r.Streams, r.Stdout, err)
			}
			for range 2 {
				r, err := s.Run(t.Context(), session.Command{Text: "echo out; echo err >&2; (exit 3)", Timeout: 5 * time.Second})
				if r.Verdict != session.Exited || r.ExitCode != 3 || r.Streams != session.OnTerminal || string(r.Stdout) != "out\nerr\n" || r.Duration > time.Second {
					t.Errorf("got %s %d %s %q after %v, %v; want all on the terminal", r.Verdict, r.ExitCode, r.Streams, r.Stdout, r.Duration, err)
				}
			}
		})
	}
}

// TestTerminalCarriesAllBehindAHolder: who was seen to hold the streams of a keeper that is
// gone holds none of the terminal's.
func TestTerminalCarriesAllBehindAHolder(t *testing.T) {
	runtime := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	s := openOn(t, impoverished(local.New(local.Config{Env: []string{"HOME=" + t.TempDir(), "XDG_RUNTIME_DIR=" + runtime}})), session.Config{Shell: "bash"})
	run(t, s, "cd '"+t.TempDir()+"'; sh -c '(until [ -e go ]; do sleep 0.02; done) &'")
	<-time.After(500 * time.Millisecond) // it has been looked for by then
	killKeepers(t, runtime)
	for range 3 {
		begun := time.Now()
		r := run(t, s, "echo out >go")
		if took := time.Since(begun); r.ExitCode != 0 || r.Streams != session.OnTerminal || sshdtest.Over(t, took, 5*time.Second) {
			t.Errorf("got %s %d %s after %v, want all on the terminal at once", r.Verdict, r.ExitCode, r.Streams, took)
		}
	}
}

func TestTerminalCarriesAllWhereThereIsNoPlace(t *testing.T) {
	eachFallback(t, withoutFIFOs, func(t *testing.T, s *session.Session) {
		r := run(t, s, "echo out; echo err >&2; cd /tmp; (exit 4)")
		if string(r.Stdout) != "out\nerr\n" || r.ExitCode != 4 || r.Streams != session.OnTerminal || r.Cwd != "/tmp" {
			t.Errorf("got %d %q, %s, in %s", r.ExitCode, r.Stdout, r.Streams, r.Cwd)
		}
		if r := run(t, s, "pwd; cat"); string(r.Stdout) != "/tmp\n" {
			t.Errorf("got %q", r.Stdout)
		}
		r, err := s.Run(t.Context(), session.Command{Text: "echo part; sleep 1000", Timeout: 200 * time.Millisecond})
		if r.Verdict != session.TimedOut || err == nil || !strings.HasPrefix(string(r.Stdout), "part\n") || r.Ended {
			t.Errorf("got %s %q ended=%v, %v", r.Verdict, r.Stdout, r.Ended, err)
		}
		if r := run(t, s, "pwd"); string(r.Stdout) != "/tmp\n" {
			t.Errorf("got %q", r.Stdout)
		}
		if r, err := s.Run(t.Context(), session.Command{Text: "cat", Stdin: strings.NewReader("x")}); r.Verdict != session.NotStarted || err == nil {
			t.Errorf("stdin without a place for it = %s, %v, want not_started", r.Verdict, err)
		}
	})
}

// TestNoFileMayBeWritten: an account that may write no byte to a file has commands that are typed, and
// nothing of a keeper stays.
func TestNoFileMayBeWritten(t *testing.T) {
	t.Parallel()
	limited := func(command string) string { return "ulimit -f 0; " + command }
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			runtime := t.TempDir()
			machine := altered{
				Transport:  local.New(local.Config{Env: []string{"HOME=" + t.TempDir(), "XDG_RUNTIME_DIR=" + runtime}}),
				onTerminal: limited, onPipe: limited,
			}
			s := openOn(t, machine, session.Config{Shell: shell})
			want(t, run(t, s, "echo out; echo err >&2; (exit 3)"), 3, "out\n", "err\n")
			s.Close()
			if left, _ := filepath.Glob(filepath.Join(runtime, ".gw-*")); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}
