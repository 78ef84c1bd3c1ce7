package session_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

func TestShellThatEndsGivesItsStatus(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text    string
		verdict session.Verdict
		code    int
		signal  string
	}{
		{"echo last; exit 3", session.Exited, 3, ""},
		{"echo last; exit 0", session.Exited, 0, ""},
		{"echo last; kill -9 $$", session.Signaled, 137, "KILL"},
		{"echo last; exec sh -c 'exit 4'", session.Exited, 4, ""},
		{"set -e; echo last; false", session.Exited, 1, ""},
		{"set -eu; f() { echo last; exit 9; }; f", session.Exited, 9, ""},
		{"trap 'echo last' EXIT; exit 5", session.Exited, 5, ""},
	} {
		t.Run(test.text, func(t *testing.T) {
			eachShell(t, func(t *testing.T, s *session.Session) {
				r := run(t, s, test.text)
				if len(r.Stderr) > 0 {
					t.Errorf("stderr = %q, want nothing", r.Stderr)
				}
				// dash and ash run the EXIT trap when they have their own streams back.
				r.Stdout = append(r.Stdout, r.Terminal...)
				if r.Verdict != test.verdict || r.ExitCode != test.code || r.Signal != test.signal || string(r.Stdout) != "last\n" || !r.Ended {
					t.Errorf("got %s %d %s %q ended=%v, want %s %d %s %q and the end", r.Verdict, r.ExitCode, r.Signal, r.Stdout, r.Ended, test.verdict, test.code, test.signal, "last\n")
				}
				r, err := s.Run(t.Context(), session.Command{Text: "echo again"})
				if !errors.Is(err, session.ErrClosed) || r.Verdict != session.NotStarted {
					t.Errorf("Run after the end = %s, %v, want not_started and %v", r.Verdict, err, session.ErrClosed)
				}
			})
		})
	}
}

// TestShellThatEndsBesideAJob: a subshell that runs on holds the terminal.
func TestShellThatEndsBesideAJob(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, says string
		plain      bool
		within     time.Duration
	}{
		{"silent", ":", false, 3 * time.Second},
		{"silent, no terminal", ":", true, 3 * time.Second},
		{"speaks", "echo tick", false, 3 * time.Second},
		{"speaks, no terminal", "echo tick", true, 3 * time.Second},
		{"speaks on the terminal", "echo tick >/dev/tty", false, 8 * time.Second},
	} {
		for _, shell := range shells {
			t.Run(shell+" "+test.name, func(t *testing.T) {
				t.Parallel()
				up := filepath.Join(t.TempDir(), "up")
				s := open(t, session.Config{Shell: shell, NoTerminal: test.plain})
				job := "(: >" + up + "; while [ -e " + up + " ]; do " + test.says + "; sleep 0.05; done) & while ! [ -e " + up + " ]; do sleep 0.01; done; "
				defer os.Remove(up)
				r, err := s.Run(t.Context(), session.Command{Text: job + "echo part; exit 3", Timeout: 20 * time.Second})
				said := strings.ReplaceAll(string(r.Stdout), "tick\n", "")
				said = strings.TrimSuffix(said, "tick") // it is ended when it likes
				if err != nil || r.Verdict != session.Exited || r.ExitCode != 3 || !r.Ended || said != "part\n" || r.Duration > test.within {
					t.Errorf("got %s %d %q after %v, ended %v, %v; want exited 3", r.Verdict, r.ExitCode, r.Stdout, r.Duration, r.Ended, err)
				}
			})
		}
	}
}

// TestShellHungUpBefore: the shell is hung up before it has read the command. mksh catches
// that, and exits. ksh93 reads the command first.
func TestShellHungUpBefore(t *testing.T) {
	for _, shell := range shells {
		if shell == "zsh" { // its status is that of a command that fails
			continue
		}
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "ran")
			s := open(t, session.Config{Shell: shell})
			pid := pidOf(t, s)
			syscall.Kill(pid, syscall.SIGSTOP)
			r, err := s.Run(t.Context(), session.Command{Text: "touch " + file, Started: func() {
				syscall.Kill(pid, syscall.SIGHUP)
				syscall.Kill(pid, syscall.SIGCONT)
			}})
			if _, missing := os.Stat(file); missing != nil && (r.Verdict != session.Unknown || !errors.Is(err, session.ErrLost) || !r.Ended) {
				t.Errorf("got %s %d, ended %v, %v of what did not run; want unknown", r.Verdict, r.ExitCode, r.Ended, err)
			}
		})
	}
}

// TestShellThatSaysItWasHungUp: the status of a hang-up may be the command's own.
func TestShellThatSaysItWasHungUp(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		if r := run(t, s, "exit 129"); r.Verdict != session.Exited || r.ExitCode != 129 || !r.Ended {
			t.Errorf("got %s %d, ended %v; want exited 129", r.Verdict, r.ExitCode, r.Ended)
		}
	})
}

// TestShellThatEndedBefore: the shell is killed before it has read the command.
func TestShellThatEndedBefore(t *testing.T) {
	for _, onTerminal := range []bool{false, true} {
		for _, shell := range shells {
			t.Run(shell+map[bool]string{true: " on the terminal"}[onTerminal], func(t *testing.T) {
				t.Parallel()
				file := filepath.Join(t.TempDir(), "ran")
				s := open(t, session.Config{Shell: shell})
				pid := pidOf(t, s)
				syscall.Kill(pid, syscall.SIGSTOP)
				command := session.Command{Text: "touch " + file, TTY: onTerminal, Started: func() { syscall.Kill(pid, syscall.SIGKILL) }}
				r, err := s.Run(t.Context(), command)
				if r.Verdict != session.Unknown || !errors.Is(err, session.ErrLost) || !r.Ended || r.ExitCode != -1 {
					t.Errorf("got %s %d, ended %v, %v; want unknown", r.Verdict, r.ExitCode, r.Ended, err)
				}
				if _, err := os.Stat(file); err == nil {
					t.Error("it ran")
				}
			})
		}
	}
}

// A sluggish terminal is closed only once its program has ended.
type sluggish struct{ transport.Terminal }

func (s sluggish) Close() error {
	<-s.Done()
	return s.Terminal.Close()
}

// TestHangUpIsNoExit: many shells end with a status of their own when they are hung up,
// ksh93 with 0. Who closes the session, or its transport, under a command has not learnt
// how it ended.
func TestHangUpIsNoExit(t *testing.T) {
	for _, shell := range shells {
		for _, what := range []string{"session", "session, and the shell ends first", "transport"} {
			if strings.HasSuffix(what, "first") && shell == "ksh" {
				continue // it waits for its program
			}
			t.Run(shell+", "+what, func(t *testing.T) {
				t.Parallel()
				tr := local.New(local.Config{Env: []string{"HOME=" + t.TempDir()}})
				machine := altered{Transport: tr}
				if strings.HasSuffix(what, "first") {
					machine.terminal = func(t transport.Terminal) transport.Terminal { return sluggish{t} }
				}
				s := openOn(t, machine, session.Config{Shell: shell})
				hangUp := s.Close
				if what == "transport" {
					hangUp = tr.Close
				}
				closed := make(chan error, 1)
				up := sync.OnceFunc(func() { go func() { closed <- hangUp() }() })
				r, err := s.Run(t.Context(), session.Command{Text: "sh -c 'echo up; exec sleep 1000'", Output: func(session.Stream, []byte) { up() }})
				unknown := r.Verdict == session.Unknown && r.ExitCode == -1 && errors.Is(err, session.ErrLost) && r.Ended
				told := r.Verdict == session.Exited && r.ExitCode == 128+int(syscall.SIGHUP) && err == nil // of sleep, by the marks
				if !unknown && !told {
					t.Errorf("got %s %d, ended %v, %v; want unknown", r.Verdict, r.ExitCode, r.Ended, err)
				}
				s.Close()
				<-closed
			})
		}
	}
}

// TestShellThatEndsWhileItIsAsked: it has left the line of a command before its marks, and
// goes away when it is asked where it is. The status at its prompt is that of the marks
// where these could not be written.
func TestShellThatEndsWhileItIsAsked(t *testing.T) {
	tr := local.New(local.Config{Env: []string{"HOME=" + t.TempDir()}})
	var leaves atomic.Bool
	s := openOn(t, altered{Transport: tr, terminal: func(t transport.Terminal) transport.Terminal { return leaving{t, &leaves} }}, session.Config{Shell: "dash"})
	command := session.Command{Text: "echo up; kill -INT $$", Output: func(session.Stream, []byte) { leaves.Store(true) }}
	r, err := s.Run(t.Context(), command)
	if r.Verdict != session.Unknown || r.ExitCode != -1 || !errors.Is(err, session.ErrLost) || !r.Ended {
		t.Errorf("got %s %d, ended %v, %v; want unknown", r.Verdict, r.ExitCode, r.Ended, err)
	}
}

// leaving is a terminal that is gone when something is typed, once it leaves.
type leaving struct {
	transport.Terminal
	leaves *atomic.Bool
}

func (l leaving) Write(b []byte) (int, error) {
	if l.leaves.Load() {
		l.Close()
	}
	return l.Terminal.Write(b)
}
