package session_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
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

func TestInterruptLevels(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		level      session.Level
		code       int
	}{
		{"a program", "sh -c 'echo up; exec sleep 1000'", session.Int, 130},
		{"a program with a handler", `sh -c 'trap "exit 42" INT; echo up; while :; do sleep 0.01; done'`, session.Int, 42},
		{"a loop of the shell's own", "i=0; while :; do i=$((i+1)); [ $i != 99 ] || echo up; done", session.Int, 130},
		{"one that ignores it", `sh -c 'trap "" INT; echo up; while :; do sleep 0.01; done'`, session.Term, 143},
		{"one that ignores all", `sh -c 'trap "" INT TERM; echo up; while :; do sleep 0.01; done'`, session.Kill, 137},
		{"a loop that starts programs", `echo up; while :; do /bin/sleep 0.02; done`, session.Int, 130},
		{"a loop that is killed", `echo up; while :; do /bin/sleep 0.02; done`, session.Kill, 130},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachShell(t, func(t *testing.T, s *session.Session) {
				run(t, s, "cd /usr; V=kept")
				interrupted := make(chan error, 1)
				r, err := s.Run(t.Context(), session.Command{Text: test.text, Timeout: 5 * time.Second, Output: func(_ session.Stream, b []byte) {
					if strings.Contains(string(b), "up") {
						go func() { interrupted <- s.Interrupt(test.level) }()
					}
				}})
				if r.Verdict != session.Interrupted || !errors.Is(err, session.ErrInterrupted) || string(r.Stdout) != "up\n" {
					t.Errorf("got %s %q %q, %v, want interrupted with the output", r.Verdict, r.Stdout, r.Terminal, err)
				}
				if r.ExitCode != test.code && !(test.level == session.Int && r.ExitCode == 130) {
					t.Errorf("status %d, want %d", r.ExitCode, test.code)
				}
				if err := <-interrupted; err != nil {
					t.Errorf("Interrupt = %v", err)
				}
				want(t, run(t, s, "pwd; echo $V"), 0, "/usr\nkept\n", "")
			})
		})
	}
}

// TestDeadlineOfLoopWhoseProgramsIgnoreIt: they ignore what a deadline sends first. bash does
// not leave a loop for an interrupt that its program has not died of.
func TestDeadlineOfLoopWhoseProgramsIgnoreIt(t *testing.T) {
	t.Parallel()
	for _, shell := range shells[1:] {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			s := open(t, session.Config{Shell: shell})
			run(t, s, "cd /usr; V=kept")
			r, err := s.Run(t.Context(), session.Command{Text: `while :; do sh -c 'trap "" INT QUIT TERM; sleep 0.02'; done`, Timeout: 100 * time.Millisecond})
			if r.Verdict != session.TimedOut || r.Ended {
				t.Fatalf("got %s, ended %v, %v; want timed_out in a session that lives", r.Verdict, r.Ended, err)
			}
			want(t, run(t, s, "pwd; echo $V"), 0, "/usr\nkept\n", "")
		})
	}
}

// TestContinuedWhileItSpeaks: a deadline and an interrupt continue the shell, and may meet it
// at any time. A trap of a builtin that runs amid another one makes zsh write twice what that
// one was about to write.
func TestContinuedWhileItSpeaks(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		shell := pidOf(t, s)
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			every := time.NewTicker(200 * time.Microsecond)
			defer every.Stop()
			for {
				select {
				case <-every.C:
					_ = syscall.Kill(shell, syscall.SIGCONT)
				case <-stop:
					return
				}
			}
		}()
		defer func() { close(stop); <-stopped }()
		for range 200 {
			if r := run(t, s, "echo out; echo err >&2; (exit 3)"); r.ExitCode != 3 || string(r.Stdout) != "out\n" || string(r.Stderr) != "err\n" || len(r.Terminal) != 0 {
				t.Fatalf("got %s %d, stdout %q, stderr %q, terminal %q", r.Verdict, r.ExitCode, r.Stdout, r.Stderr, r.Terminal)
			}
		}
	})
}

// TestInterruptAfterInterrupts: two that came one after the other leave the
// shell as ready for the next one as it was.
func TestInterruptAfterInterrupts(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		twice := func(text string) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			r, err := s.Run(ctx, session.Command{Text: text, Output: func(from session.Stream, _ []byte) {
				if from != session.Stdout {
					return // ash speaks of what it takes for the end of its input
				}
				_ = s.Interrupt(session.Int)
				time.AfterFunc(2*time.Millisecond, func() { _ = s.Interrupt(session.Int) }) // it may be over
			}})
			if r.Verdict != session.Interrupted || r.Ended {
				t.Fatalf("%s: got %s %d, ended %v, %v", text, r.Verdict, r.ExitCode, r.Ended, err)
			}
		}
		for range 10 {
			twice(`sh -c 'trap "exit 42" INT; echo up; while :; do sleep 0.01; done'`)
			twice("echo up; " + endless(s.Shell()))
		}
	})
}

// TestTypedToAfterAnInterrupt: what has lived through a ^C and is typed to ends by itself.
func TestTypedToAfterAnInterrupt(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		const text = `sh -c 'trap "echo got" INT; echo up; while ! read x; do :; done; echo "<$x>"; exit 3'`
		var seen []byte
		next := "up\n"
		r, err := s.Run(t.Context(), session.Command{Text: text, TTY: true, Timeout: 10 * time.Second, Output: func(_ session.Stream, b []byte) {
			if seen = append(seen, b...); next == "" || !bytes.Contains(seen, []byte(next)) {
				return
			}
			if next == "got\n" {
				next = ""
				go s.Write([]byte("a\n"))
				return
			}
			next = "got\n"
			go s.Interrupt(session.Int)
		}})
		// ksh93 takes what it meets together with its program for that one's end.
		if r.Verdict != session.Exited || r.ExitCode != 3 && !strings.HasSuffix(s.Shell(), "ksh") || err != nil {
			t.Errorf("got %s %d %q, %v, want it exited with 3", r.Verdict, r.ExitCode, r.Stdout, err)
		}
		want(t, run(t, s, "echo next"), 0, "next\n", "")
	})
}

func TestNothingToInterrupt(t *testing.T) {
	s := open(t, session.Config{Shell: "sh"})
	var e *transport.Error
	if err := s.Interrupt(session.Int); !errors.As(err, &e) || e.Code != "usage" {
		t.Errorf("Interrupt = %v, want usage", err)
	}
	if err := s.Interrupt("hard"); !errors.As(err, &e) || e.Code != "usage" {
		t.Errorf("Interrupt = %v, want usage", err)
	}
	want(t, run(t, s, "echo fine"), 0, "fine\n", "")
}

// TestInterruptThatComesLate cancels a command at the moment of its end, when
// the ^C may meet the shell between two commands.
func TestInterruptThatComesLate(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		for range 10 {
			ctx, cancel := context.WithCancel(t.Context())
			_, err := s.Run(ctx, session.Command{Text: "echo part", Output: func(session.Stream, []byte) { cancel() }})
			cancel()
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatalf("Run = %v", err)
			}
			want(t, run(t, s, "echo next; (exit 3)"), 3, "next\n", "")
		}
	})
}

func TestIdleDeadline(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		r, err := s.Run(t.Context(), session.Command{Text: "for i in 1 2 3 4; do echo $i; sleep 0.2; done; sleep 1000", Idle: 600 * time.Millisecond, Timeout: time.Minute})
		if r.Verdict != session.TimedOut || !errors.Is(err, context.DeadlineExceeded) || string(r.Stdout) != "1\n2\n3\n4\n" {
			t.Errorf("got %s %q, %v, want timed_out after the fourth line", r.Verdict, r.Stdout, err)
		}
		want(t, run(t, s, "echo fine"), 0, "fine\n", "")
	})
}

func TestTypingIsForWhoReads(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		var wrote error
		run(t, s, "V=kept")
		started := make(chan struct{})
		go func() {
			<-started
			_, wrote = s.Write([]byte("V=typed\n"))
			close(started)
		}()
		if _, err := s.Run(t.Context(), session.Command{Text: "sleep 0.2", Started: func() { started <- struct{}{} }}); err != nil {
			t.Fatal(err)
		}
		<-started
		var e *transport.Error
		if !errors.As(wrote, &e) || e.Code != "usage" {
			t.Errorf("Write = %v, want usage", wrote)
		}
		want(t, run(t, s, "echo $V"), 0, "kept\n", "")
	})
}

// TestInterruptIsNotLost interrupts a shell in the moment when it starts a
// program: the process that will become the program has the shell's handler.
func TestInterruptIsNotLost(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		for i := range 20 {
			r, err := s.Run(t.Context(), session.Command{Text: "echo part; sleep 1000", Timeout: 10 * time.Second, Output: func(session.Stream, []byte) {
				if err := s.Interrupt(session.Int); err != nil {
					t.Errorf("Interrupt = %v", err)
				}
			}})
			if r.Verdict != session.Interrupted || string(r.Stdout) != "part\n" {
				t.Fatalf("round %d: got %s %q, %v, want interrupted", i, r.Verdict, r.Stdout, err)
			}
		}
	})
}

// What is typed to bring the shell back is echoed by a terminal that a person
// types to, and is no output.
func TestInterruptOnTerminalWithEcho(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		started := make(chan struct{})
		go func() {
			<-started
			s.Write([]byte("\x03"))
		}()
		up := false
		var seen []byte
		r, _ := s.Run(t.Context(), session.Command{Text: "sh -c 'echo up; exec sleep 60'", TTY: true, Echo: true, Timeout: 5 * time.Second, Output: func(_ session.Stream, b []byte) {
			if seen = append(seen, b...); !up && bytes.Contains(seen, []byte("up\r\n")) {
				up = true
				close(started)
			}
		}})
		if got := string(r.Stdout); strings.Contains(got, "stty") || strings.Contains(got, "_gw") || !strings.HasPrefix(got, "up\r\n") {
			t.Errorf("Stdout = %q, want no more than up and ^C", got)
		}
	})
}

// TestDeadlineOnATerminalThatEchoes: whatever a startup file has done to it, the keys that end
// a command are the session's own.
func TestDeadlineOnATerminalThatEchoes(t *testing.T) {
	echoes := altered{Transport: local.New(local.Config{}), onTerminal: func(command string) string { return "stty echo; " + command }}
	s := openOn(t, echoes, session.Config{Shell: "bash"})
	r, err := s.Run(t.Context(), session.Command{Text: "echo seen >/dev/tty; sleep 1000", Timeout: time.Second})
	if r.Verdict != session.TimedOut || string(r.Terminal) != "seen\n" {
		t.Errorf("got %s, terminal %q, %v", r.Verdict, r.Terminal, err)
	}
}

// TestDeadlineWhileNobodyTakesTheOutput: a caller that is slow is no dead link.
func TestDeadlineWhileNobodyTakesTheOutput(t *testing.T) {
	t.Parallel()
	s := open(t, session.Config{Shell: "sh"})
	free := make(chan struct{})
	time.AfterFunc(2500*time.Millisecond, func() { close(free) })
	r, err := s.Run(t.Context(), session.Command{Text: "yes | head -c 1000000; yes >&2", Merge: true, Timeout: 300 * time.Millisecond, Output: func(session.Stream, []byte) { <-free }})
	if r.Verdict != session.TimedOut || r.Ended {
		t.Errorf("got %s, ended %v, %v; want timed_out, and a session that lives", r.Verdict, r.Ended, err)
	}
	want(t, run(t, s, "echo fine"), 0, "fine\n", "")
}

// TestInterruptedLoops: the end of the programs must not meet a ksh93 that is about
// to take the interrupt itself: one session in eighty was lost to that. An interrupt
// must not stay lost on a program that bash is about to start, after which it goes on
// with its loop: one deadline in eighty took more than two seconds.
func TestInterruptedLoops(t *testing.T) {
	t.Parallel()
	for shell, text := range map[string]string{
		"ksh":  "while :; do sleep 0.01; done | cat | cat; sleep 60",
		"bash": "while /bin/sleep 0.01; do /bin/true; done",
	} {
		for i := range 8 {
			t.Run(shell+strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				s := open(t, session.Config{Shell: shell})
				for range 20 {
					faulty := sshdtest.WatchFault(shell, strings.TrimSpace(string(run(t, s, "echo $$").Stdout)))
					timeout := time.Duration(1+rand.IntN(200)) * time.Millisecond
					r, err := s.Run(t.Context(), session.Command{Text: text, Timeout: timeout})
					if faulty() && r.Verdict == session.TimedOut && r.Ended {
						t.Log("a fault of the shell itself: a fresh one")
						s = open(t, session.Config{Shell: shell})
						continue
					}
					if r.Verdict != session.TimedOut || r.Ended || r.Duration > timeout+2*time.Second {
						t.Fatalf("got %+v, %v, want timed_out in a session that lives, two seconds after %v", r, err, timeout)
					}
				}
			})
		}
	}
}

// TestTrapTakenAway: busybox ash needs a trap of its own on INT to survive an interrupt
// within a builtin. A text that had taken it away left the session without it, and one
// interrupt in some hundred of a loop of builtins ended that.
func TestTrapTakenAway(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			s := open(t, session.Config{Shell: "busybox ash"})
			run(t, s, "trap 'echo mine' INT")
			run(t, s, "true")
			if r := run(t, s, "trap"); string(r.Stdout) != "trap -- 'echo mine' INT\n" {
				t.Fatalf("the traps are %q, want the command's own", r.Stdout)
			}
			run(t, s, "trap - INT")
			if r := run(t, s, "trap"); !strings.HasSuffix(string(r.Stdout), " INT\n") {
				t.Fatalf("the traps are %q, want the session's own", r.Stdout)
			}
			for n := range 20 {
				timeout := time.Duration(1+rand.IntN(20)) * time.Millisecond
				r, err := s.Run(t.Context(), session.Command{Text: "while :; do [ a != b ]; done", Timeout: timeout})
				if r.Verdict != session.TimedOut || r.Ended {
					t.Fatalf("loop %d: got %+v, %v, want timed_out in a session that lives", n, r, err)
				}
			}
		})
	}
}

// TestInterruptWithDigitsInIFS: the engine's trap in busybox ash leaves no word to it.
func TestInterruptWithDigitsInIFS(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		run(t, s, "IFS=0123456789:")
		r, _ := s.Run(t.Context(), session.Command{Text: "while :; do :; done", Timeout: 200 * time.Millisecond})
		if r.Verdict != session.TimedOut || r.ExitCode != 130 || strings.Contains(string(r.Stderr), "operand") {
			t.Errorf("got %s %d, stderr %q", r.Verdict, r.ExitCode, r.Stderr)
		}
		want(t, run(t, s, "echo on; (exit 3)"), 3, "on\n", "")
	})
}

// TestDeadlineAfterASlowStart: how long a shell took to start says nothing of how long
// one has to wait for an answer. It was waited for twice at each step, before what
// ignores the first ones was killed.
func TestDeadlineAfterASlowStart(t *testing.T) {
	t.Parallel()
	tr := local.New(local.Config{})
	s := openOn(t, altered{Transport: tr, onTerminal: func(command string) string { return "sleep 2; " + command }}, session.Config{Shell: "sh"})
	r, err := s.Run(t.Context(), session.Command{Text: `sh -c 'trap "" INT QUIT TERM; while :; do sleep 0.05; done'`, Timeout: 100 * time.Millisecond})
	if r.Verdict != session.TimedOut || r.Ended || r.Duration > 5*time.Second { // it was 16 s
		t.Errorf("got %s, ended %v, after %v, %v; want timed_out within seconds", r.Verdict, r.Ended, r.Duration, err)
	}
	want(t, run(t, s, "echo fine"), 0, "fine\n", "")
}

// TestInterruptedFirstCommand: what the first frame sets up is there, also if a
// ^C has thrown that frame away.
func TestInterruptedFirstCommand(t *testing.T) {
	t.Parallel()
	const state = "/usr/bin/env | grep -v '^HOME=\\|^_=\\|^GATEWAY_SESSION=' | sort; trap; echo $-"
	for _, timeout := range []time.Duration{1, time.Millisecond, 2 * time.Millisecond, 4 * time.Millisecond} {
		t.Run(timeout.String(), func(t *testing.T) {
			for _, shell := range shells {
				t.Run(shell, func(t *testing.T) {
					t.Parallel()
					s, other := open(t, session.Config{Shell: shell}), open(t, session.Config{Shell: shell})
					if r, err := s.Run(t.Context(), session.Command{Text: "sleep 60", Timeout: timeout}); r.Verdict != session.TimedOut || r.Ended {
						t.Fatalf("got %+v, %v, want timed_out in a session that lives", r, err)
					}
					run(t, other, ":")
					want(t, run(t, s, state), 0, string(run(t, other, state).Stdout), "")
				})
			}
		})
	}
}

// TestInterruptMeetsAHandler: a program that cleans up when it is interrupted is
// not interrupted in that.
func TestInterruptMeetsAHandler(t *testing.T) {
	t.Parallel()
	const text = `sh -c 'trap "sleep 1; echo clean; exit 42" INT; sleep 0.3; (sleep 0.2; echo up) & sleep 1000; echo no'`
	eachShell(t, func(t *testing.T, s *session.Session) {
		var up sync.Once
		var since time.Time
		r, _ := s.Run(t.Context(), session.Command{Text: text, Timeout: 10 * time.Second, Output: func(from session.Stream, b []byte) {
			if from == session.Stdout {
				up.Do(func() { since = time.Now(); go s.Interrupt(session.Int) })
			}
		}})
		if r.Verdict != session.Interrupted || string(r.Stdout) != "up\nclean\n" {
			t.Errorf("got %s %d %q", r.Verdict, r.ExitCode, r.Stdout)
		}
		if took := time.Since(since); took < time.Second {
			t.Errorf("it ended after %v, within its handler", took)
		}
		run(t, s, ":")
	})
}

// TestInterruptMissesNoChild interrupts programs that start their own in that
// moment. One that is signaled between the look for whom to signal and its turn
// may have started another meanwhile, which nobody waits for.
func TestInterruptMissesNoChild(t *testing.T) {
	t.Parallel()
	const text = `/bin/sh -c 'n=0; while [ $n -lt 20 ]; do /bin/sh -c "echo up; /bin/sleep 987; :" & n=$((n+1)); done; wait'`
	const deadline session.Level = "deadline"
	for _, level := range []session.Level{session.Term, session.Kill, deadline} {
		t.Run(string(level), func(t *testing.T) {
			eachShell(t, func(t *testing.T, s *session.Session) {
				for range 2 {
					var up atomic.Int64
					after := rand.Int64N(20)
					want, timeout := session.Interrupted, 10*time.Second
					if level == deadline {
						want, timeout = session.TimedOut, time.Duration(1+rand.IntN(200))*time.Millisecond
					}
					r, err := s.Run(t.Context(), session.Command{Text: text, Timeout: timeout, Output: func(from session.Stream, b []byte) {
						if level == deadline {
							return
						}
						if n := int64(bytes.Count(b, []byte("up\n"))); from == session.Stdout && up.Add(n) > after && up.Load()-n <= after {
							go s.Interrupt(level)
						}
					}})
					if r.Verdict != want || r.Ended {
						t.Fatalf("got %s, ended %v, terminal %q, after %v, %v", r.Verdict, r.Ended, r.Terminal, r.Duration, err)
					}
					eventually(t, "nothing of it is left", func() bool { // one that was killed has to get a processor for it
						return !slices.ContainsFunc(processes(s.ID()), func(pid string) bool {
							words, _ := os.ReadFile("/proc/" + pid + "/cmdline")
							return strings.HasPrefix(string(words), "/bin/")
						})
					})
				}
			})
		})
	}
}
