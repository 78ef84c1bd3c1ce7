package session_test

import (
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"gateway/session"
	"gateway/transport"
	"gateway/transport/local"
)

// TestShellsDoNotDraw wants nothing on the terminal but what a command writes
// there, also on one that has attributes.
func TestShellsDoNotDraw(t *testing.T) {
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			s := open(t, session.Config{Shell: shell, Term: "xterm"})
			for _, text := range []string{"echo on", "sh -c 'echo on'", "stty echo icanon </dev/tty; echo on", "echo on", "stty raw </dev/tty; echo on"} {
				if r := run(t, s, text); string(r.Stdout) != "on\n" || len(r.Terminal) > 0 {
					t.Errorf("%s: %q, terminal %q", text, r.Stdout, r.Terminal)
				}
			}
			if r := runCommand(t, s, session.Command{Text: `printf '\033[mback'`, TTY: true}); string(r.Stdout) != "\x1b[mback" {
				t.Errorf("on the terminal %q", r.Stdout)
			}
		})
	}
}

// laggard returns a machine whose terminal is slower than its pipes.
func laggard(by *atomic.Int64) transport.Transport {
	return altered{Transport: local.New(local.Config{}), terminal: func(t transport.Terminal) transport.Terminal { return lagging{t, by} }}
}

type lagging struct {
	transport.Terminal
	by *atomic.Int64 // time.Duration
}

func (t lagging) Read(b []byte) (int, error) {
	time.Sleep(time.Duration(t.by.Load()))
	return t.Terminal.Read(b)
}

// TestDrawnLate: yash switches attributes off for each line that it reads. That is no
// output, also where it comes when the line's command is over.
func TestDrawnLate(t *testing.T) {
	var lag atomic.Int64
	lag.Store(int64(20 * time.Millisecond))
	s := openOn(t, laggard(&lag), session.Config{Shell: "yash", Term: "xterm"})
	for range 5 {
		runCommand(t, s, session.Command{Text: "echo on", TTY: true})
		want(t, run(t, s, "echo on"), 0, "on\n", "")
		want(t, run(t, s, "sleep 0.1; echo on"), 0, "on\n", "")
	}
}

// TestTerminalThatIsLate: what a command is likely to write to the terminal is waited for, also
// on a machine that is slower than it has been.
func TestTerminalThatIsLate(t *testing.T) {
	t.Parallel()
	var lag atomic.Int64
	s := openOn(t, laggard(&lag), session.Config{})
	lag.Store(int64(100 * time.Millisecond))
	for range 3 {
		if r := run(t, s, `printf 'x\036P' >/dev/tty`); string(r.Terminal) != "x\x1eP" {
			t.Errorf("terminal %q", r.Terminal)
		}
	}
}

// TestNoticesOnTheTerminal: what a shell says of the jobs of earlier commands, whenever
// they end, is not what a command writes to the terminal. Nor is anything of that
// lost, where the end of a job meets the engine's own words.
func TestNoticesOnTheTerminal(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
			run(t, s, "for i in 0 1 2 3 4 5 6 7 8 9; do for j in 1 3 5 7 9; do sleep 0.00$i$j & done; done >/dev/null 2>&1")
			for range 5 {
				if r := runCommand(t, s, session.Command{Text: "echo yes; (exit 9)", TTY: true}); r.ExitCode != 9 || string(r.Stdout) != "yes\n" {
					t.Fatalf("status %d, %q", r.ExitCode, r.Stdout)
				}
			}
		}
	})
}

// promptless is a terminal that loses prompts while lose is set.
type promptless struct {
	transport.Terminal
	lose *atomic.Bool
}

var promptMark = regexp.MustCompile("\x1eP[0-9a-f]{16}:0:#\x1e[0-9a-f]{16};")

func (t promptless) Read(b []byte) (int, error) {
	n, err := t.Terminal.Read(b)
	if !t.lose.Load() {
		return n, err
	}
	return copy(b, promptMark.ReplaceAll(b[:n], nil)), err
}

// TestPromptThatIsLost: a prompt that has not come may have met a signal. What the next
// command writes to the terminal is its own all the same.
func TestPromptThatIsLost(t *testing.T) {
	var lose atomic.Bool
	s := openOn(t, altered{Transport: local.New(local.Config{}), terminal: func(t transport.Terminal) transport.Terminal { return promptless{t, &lose} }}, session.Config{Shell: "dash"})
	for range 3 {
		lose.Store(true)
		want(t, run(t, s, "ls /dev/null"), 0, "/dev/null\n", "")
		time.AfterFunc(300*time.Millisecond, func() { lose.Store(false) })
		want(t, runCommand(t, s, session.Command{Text: "echo yes; sleep 0.4", TTY: true}), 0, "yes\n", "")
	}
}

// TestTerminalIsTakenSlowly: what a command has written to the terminal is in its result,
// however long the caller takes for it, but for who is too slow for a deadline.
func TestTerminalIsTakenSlowly(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"printf %03000d 0 >/dev/tty", "T=/dev/tt; printf %03000d 0 >${T}y"} {
		t.Run(text, func(t *testing.T) {
			eachShell(t, func(t *testing.T, s *session.Session) {
				var taken atomic.Int64
				r := runCommand(t, s, session.Command{Text: text, Output: func(from session.Stream, b []byte) {
					if from == session.Terminal {
						time.Sleep(100 * time.Millisecond)
						taken.Add(int64(len(b)))
					}
				}})
				if len(r.Terminal) != 3000 || taken.Load() != 3000 || r.Cut || r.Truncated {
					t.Errorf("the result has %d bytes, the caller %d, cut %v", len(r.Terminal), taken.Load(), r.Cut)
				}
			})
		})
	}
}

// TestTerminalIsNotTaken: a deadline holds all the same.
func TestTerminalIsNotTaken(t *testing.T) {
	t.Parallel()
	s := open(t, session.Config{})
	free := make(chan struct{})
	r, err := s.Run(t.Context(), session.Command{Text: "printf %03000d 0 >/dev/tty", Timeout: 300 * time.Millisecond, Output: func(session.Stream, []byte) { <-free }})
	close(free)
	if err != nil || r.Verdict != session.Exited || !r.Cut || !r.Truncated {
		t.Errorf("%+v, %v, want a result that is cut", r, err)
	}
	want(t, run(t, s, "echo fine"), 0, "fine\n", "")
}

// TestTerminalThatIsNeverEmpty: what a job writes there for ever is not waited for.
func TestTerminalThatIsNeverEmpty(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		run(t, s, "yes >/dev/tty & JOB=$!")
		if r := run(t, s, "echo fine"); r.Duration > 5*time.Second {
			t.Errorf("it took %v", r.Duration)
		}
		run(t, s, "kill $JOB")
	})
}
