package session_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gateway/internal/sshdtest"
	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// killKeepers kills the keepers whose directories are in dir.
func killKeepers(t *testing.T, dir string) {
	t.Helper()
	for _, pid := range signalKeepers(t, dir, syscall.SIGKILL) {
		eventually(t, "the keeper is gone", func() bool { return syscall.Kill(pid, 0) != nil })
	}
}

// signalKeepers sends a signal to them.
func signalKeepers(t *testing.T, dir string, signal syscall.Signal) (pids []int) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, ".gw-*", "p"))
	if len(files) == 0 {
		t.Error("no keeper found")
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err == nil {
			err = syscall.Kill(pid, signal)
		}
		if err != nil {
			t.Error(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// TestKeeperThatIsKilled: another one takes its place, and what nobody knows is
// unknown. A frame that holds the streams tells the end over them all the same.
func TestKeeperThatIsKilled(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		for _, shell := range shells {
			t.Run(shell+map[bool]string{true: " without a terminal"}[plain], func(t *testing.T) {
				t.Parallel()
				s, runtime := openIn(t, session.Config{Shell: shell, NoTerminal: plain})
				run(t, s, "cd /usr; V=kept")
				fine := func(when string) {
					t.Helper()
					eventually(t, when+": a command has another keeper", func() bool {
						r, err := s.Run(t.Context(), session.Command{Text: "pwd; echo $V"})
						return err == nil && string(r.Stdout) == "/usr\nkept\n"
					})
					eventually(t, "only one keeper's directory is left", func() bool {
						left, _ := filepath.Glob(filepath.Join(runtime, ".gw-*"))
						return len(left) == 1
					})
				}

				killKeepers(t, runtime)
				fine("killed while nothing ran")

				var once *sync.Once
				up := func(session.Stream, []byte) { once.Do(func() { killKeepers(t, runtime) }) }
				once = new(sync.Once)
				r, err := s.Run(t.Context(), session.Command{Text: "echo up; sleep 0.3", Output: up, Timeout: 10 * time.Second})
				unknown := r.Verdict == session.Unknown && errors.Is(err, session.ErrLost)
				known := r.Verdict == session.Exited && r.ExitCode == 0 && err == nil // the frame held its streams
				if !unknown && !known || string(r.Stdout) != "up\n" || r.Ended {
					t.Errorf("killed during a command: %s %q, ended %v, %v; want unknown, or exited", r.Verdict, r.Stdout, r.Ended, err)
				}
				fine("killed during a command")

				if plain {
					return // nobody is left to interrupt
				}
				begun := time.Now()
				once = new(sync.Once)
				r, err = s.Run(t.Context(), session.Command{Text: "echo up; /bin/sleep 60", Output: up, Timeout: 500 * time.Millisecond})
				if r.Verdict != session.TimedOut || !errors.Is(err, context.DeadlineExceeded) || r.Ended || sshdtest.Over(t, time.Since(begun), 4*time.Second) {
					t.Errorf("killed before a deadline: %s after %v, ended %v, %v; want timed_out", r.Verdict, time.Since(begun), r.Ended, err)
				}
				fine("killed before a deadline")
			})
		}
	}
}

// watched is a machine where somebody sees what a keeper is about to be told.
func watched(tr transport.Transport, see func([]byte)) altered {
	return altered{Transport: tr, pipe: func(_ string, p *transport.Pipe) { p.Stdin = seen{p.Stdin, see} }}
}

type seen struct {
	io.WriteCloser
	see func([]byte)
}

func (s seen) Write(b []byte) (int, error) {
	s.see(b)
	return s.WriteCloser.Write(b)
}

// TestKeeperThatDiesOfADeadline: the shell reads commands again, and the next one
// has another keeper.
func TestKeeperThatDiesOfADeadline(t *testing.T) {
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			runtime := t.TempDir()
			tr := local.New(local.Config{Env: []string{"HOME=" + t.TempDir(), "XDG_RUNTIME_DIR=" + runtime}})
			kill := sync.OnceFunc(func() { killKeepers(t, runtime) })
			s := openOn(t, watched(tr, func(b []byte) {
				if bytes.Contains(b, []byte("kill -KILL")) { // the line that is to end the command
					kill()
				}
			}), session.Config{Shell: shell})
			run(t, s, "cd /usr; V=kept")
			r, err := s.Run(t.Context(), session.Command{Text: "echo part; sleep 60", Timeout: 200 * time.Millisecond})
			if r.Verdict != session.TimedOut || !errors.Is(err, context.DeadlineExceeded) || string(r.Stdout) != "part\n" || len(r.Terminal) > 0 || r.Ended {
				t.Fatalf("got %s %q, terminal %q, ended %v, %v; want timed_out", r.Verdict, r.Stdout, r.Terminal, r.Ended, err)
			}
			want(t, run(t, s, "pwd; echo $V"), 0, "/usr\nkept\n", "")
		})
	}
}

// TestKeeperThatTakesNoText: a command that is too long to be typed is not begun then, and
// the session has ended: in the time that it may take, or with the caller's context.
func TestKeeperThatTakesNoText(t *testing.T) {
	t.Parallel()
	for name, length := range map[string]int{"there is room on the way": 5_000, "there is none": 200_000} {
		for _, patience := range []time.Duration{300 * time.Millisecond, time.Minute} {
			if patience == time.Minute && length > 5_000 {
				continue // it takes its time
			}
			t.Run(name+" "+patience.String(), func(t *testing.T) {
				t.Parallel()
				s, runtime := openIn(t, session.Config{Shell: "bash", OpenTimeout: 5 * time.Second})
				run(t, s, "true")
				pids := signalKeepers(t, runtime, syscall.SIGSTOP)
				defer func() {
					for _, pid := range pids {
						_ = syscall.Kill(pid, syscall.SIGCONT)
					}
				}()
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				wanted := context.DeadlineExceeded
				if patience == time.Minute {
					wanted = session.ErrClosed
				}
				r, err := s.Run(ctx, session.Command{Text: ": " + strings.Repeat("x", length), Timeout: time.Second})
				if r.Verdict != session.NotStarted || !r.Ended || !errors.Is(err, wanted) {
					t.Errorf("got %s, ended %v, %v; want not_started, and the end of the session for %v", r.Verdict, r.Ended, err, wanted)
				}
				if _, err := s.Run(t.Context(), session.Command{Text: "true"}); !errors.Is(err, session.ErrClosed) {
					t.Errorf("then %v, want %v", err, session.ErrClosed)
				}
			})
		}
	}
}

// TestInterruptWithoutAKeeper: it reaches the command, and nobody waits for the answer of
// a look that the keeper did not live to take, although a job holds its streams.
func TestInterruptWithoutAKeeper(t *testing.T) {
	t.Parallel()
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			s, runtime := openIn(t, session.Config{Shell: shell})
			ended := make(chan struct{})
			var ordered time.Time
			interrupt := sync.OnceFunc(func() {
				killKeepers(t, runtime)
				ordered = time.Now()
				// One that comes before the shell has let go of the terminal meets nobody, and
				// no keeper makes up for it.
				for again := time.NewTicker(500 * time.Millisecond); ; {
					_ = s.Interrupt(session.Int) // it may be over
					select {
					case <-again.C:
					case <-ended:
						again.Stop()
						return
					}
				}
			})
			r, err := s.Run(t.Context(), session.Command{
				Text:    `setsid sleep 15 & sh -c 'trap "trap \"\" INT; sleep 1; exit 3" INT; echo up; while :; do sleep 0.1; done'`,
				Timeout: 15 * time.Second, Output: func(session.Stream, []byte) { go interrupt() },
			})
			close(ended)
			interrupt() // until it has left: its last one would meet the next command
			// Its status went to streams that nobody could open any more.
			if took := time.Since(ordered); r.Verdict != session.Unknown || r.ExitCode != -1 || !errors.Is(err, session.ErrLost) || r.Ended || sshdtest.Over(t, took, 8*time.Second) {
				t.Errorf("%s %d after %v, ended %v, %v", r.Verdict, r.ExitCode, took, r.Ended, err)
			}
			if r := run(t, s, "echo fine"); string(r.Stdout) != "fine\n" { // zsh may say that the job has ended
				t.Errorf("then %+v", r)
			}
		})
	}
}

// TestNothingIsLeftOfAKilledKeeper: no other one comes that would clear up behind it, and
// the shell may be gone, too.
func TestNothingIsLeftOfAKilledKeeper(t *testing.T) {
	t.Parallel()
	ends := map[string]func(*testing.T, *session.Session, string){
		"just before the end": func(t *testing.T, s *session.Session, runtime string) {
			run(t, s, "rm() { :; }; PATH=")
			signalKeepers(t, runtime, syscall.SIGKILL) // nobody knows yet
		},
		"with the shell": func(t *testing.T, s *session.Session, runtime string) {
			killKeepers(t, runtime)
			_, _ = s.Run(t.Context(), session.Command{Text: "kill -9 $$"})
		},
		"with jobs on its streams": func(t *testing.T, s *session.Session, runtime string) {
			for range 3 {
				run(t, s, `sleep 10 & jobs_="$jobs_ $!"`)
			}
			killKeepers(t, runtime)
			for range 5 {
				run(t, s, `sleep 10 & jobs_="$jobs_ $!"`)
			}
			run(t, s, "eval kill $jobs_") // zsh splits no words
		},
	}
	for what, end := range ends {
		for _, shell := range shells {
			t.Run(what+" "+shell, func(t *testing.T) {
				t.Parallel()
				s, runtime := openIn(t, session.Config{Shell: shell})
				end(t, s, runtime)
				s.Close()
				eventually(t, "nothing is left", func() bool {
					left, _ := filepath.Glob(filepath.Join(runtime, ".gw-*"))
					return len(left) == 0
				})
			})
		}
	}
}

// TestNothingIsLeftOfAKeeperThatCannotFork: where the account may have no more processes,
// dash ends with status 2.
func TestNothingIsLeftOfAKeeperThatCannotFork(t *testing.T) {
	t.Parallel()
	runtime := t.TempDir()
	tr := local.New(local.Config{Env: []string{"XDG_RUNTIME_DIR=" + runtime}})
	var keeper io.Writer
	s := openOn(t, altered{Transport: tr, pipe: func(_ string, p *transport.Pipe) {
		if keeper == nil {
			keeper = p.Stdin
		}
	}}, session.Config{})
	if _, err := io.WriteString(keeper, "exit 2\n"); err != nil {
		t.Error(err)
	}
	s.Close()
	if left, _ := filepath.Glob(filepath.Join(runtime, ".gw-*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestGivenUpWhileItIsTaken: a command that is too long to be typed is given up while the
// keeper takes its text. That takes a moment, and the session lives.
func TestGivenUpWhileItIsTaken(t *testing.T) {
	t.Parallel()
	for _, size := range []int{5_000, 3_000_000} {
		tr := local.New(local.Config{Env: []string{"HOME=" + t.TempDir()}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := openOn(t, watched(tr, func(b []byte) {
			if bytes.HasPrefix(b, []byte("head -c")) {
				cancel()
			}
		}), session.Config{Shell: "bash"})
		run(t, s, "cd /usr; V=kept")
		r, err := s.Run(ctx, session.Command{Text: "V=changed; : " + strings.Repeat("x", size)})
		if r.Verdict != session.NotStarted || !errors.Is(err, context.Canceled) || r.Ended {
			t.Errorf("%d bytes: %s, ended %v, %v", size, r.Verdict, r.Ended, err)
		}
		want(t, run(t, s, "pwd; echo $V"), 0, "/usr\nkept\n", "")
	}
}

// TestKeeperWithoutStreams: what carries them may end at its beginning, where the account
// may open few files.
func TestKeeperWithoutStreams(t *testing.T) {
	t.Parallel()
	tr := local.New(local.Config{Env: []string{"HOME=" + t.TempDir()}})
	defer tr.Close()
	opened := make(chan error, 1)
	go func() {
		// A keeper lives, and its streams have no end that is here.
		s, err := session.Open(t.Context(), altered{Transport: tr, onPipe: instead("exec >/dev/null 2>&1; read x")}, session.Config{})
		if err == nil {
			s.Close()
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		if e, ok := errors.AsType[*transport.Error](err); !ok || e.Code != "shell.no_sync" {
			t.Errorf("Open = %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it still waits")
	}
}
