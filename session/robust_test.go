package session_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gateway/internal/sshdtest"
	"gateway/session"
)

// TestReadonlyWords: what a frame sets for itself, a user may have made readonly.
func TestReadonlyWords(t *testing.T) {
	for shell, text := range map[string]string{
		"bash": "PROMPT_COMMAND=; readonly PROMPT_COMMAND",
		"zsh":  "precmd_functions=(); readonly precmd_functions",
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			s := open(t, session.Config{Shell: shell})
			run(t, s, text)
			for range 2 {
				want(t, run(t, s, "echo on; (exit 3)"), 3, "on\n", "")
				want(t, runCommand(t, s, session.Command{Text: "cat; (exit 4)", Stdin: strings.NewReader("in\n")}), 4, "in\n", "")
			}
			want(t, run(t, s, "set -e"), 0, "", "")
			want(t, run(t, s, "echo on"), 0, "on\n", "")
			want(t, runCommand(t, s, session.Command{Text: "cat", Stdin: strings.NewReader("in\n")}), 0, "in\n", "")
		})
	}
}

// TestReadonlyIFS: what looks who has the terminal behind a command sets none.
func TestReadonlyIFS(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		run(t, s, "readonly IFS")
		for range 2 {
			r := runCommand(t, s, session.Command{Text: "/bin/echo on", TTY: true})
			if string(r.Stdout) != "on\n" || r.ExitCode != 0 {
				t.Errorf("got %q, %d, want what the command says", r.Stdout, r.ExitCode)
			}
			if r, err := s.Run(t.Context(), session.Command{Text: "sleep 1000", Timeout: 200 * time.Millisecond}); r.Verdict != session.TimedOut || r.Ended {
				t.Errorf("got %+v, %v, want it timed out and a session", r, err)
			}
		}
		if filepath.Base(s.Shell()) == "bash" { // which leaves another group in the terminal's foreground
			want(t, run(t, s, "bash --norc -ic 'exec true' </dev/tty >/dev/tty 2>&1"), 0, "", "")
		}
		want(t, run(t, s, "echo on"), 0, "on\n", "")
	})
}

// TestLineEditing: it hides the prompt of bash, and completes a TAB in mksh.
func TestLineEditing(t *testing.T) {
	for shell, sets := range map[string][]string{
		"bash": {"set -o vi", "set -o emacs"},
		"mksh": {"set -o vi", "set -o emacs"},
	} {
		for _, set := range sets {
			t.Run(shell+" "+set, func(t *testing.T) {
				t.Parallel()
				s := open(t, session.Config{Shell: shell})
				run(t, s, set)
				want(t, run(t, s, "echo 'a\tb'"), 0, "a\tb\n", "")
				want(t, runCommand(t, s, session.Command{Text: set + "; echo on", TTY: true}), 0, "on\n", "")
				want(t, run(t, s, "echo 'a\tb'"), 0, "a\tb\n", "")
			})
		}
	}
}

// TestPromptIsHidden: a command on the terminal ends although its prompt never
// comes.
func TestPromptIsHidden(t *testing.T) {
	s := open(t, session.Config{Shell: "bash"})
	r := runCommand(t, s, session.Command{Text: "trap 'PS1=x' DEBUG; echo on", TTY: true, Timeout: 20 * time.Second})
	if !strings.Contains(string(r.Stdout), "on") || r.Verdict != session.Exited {
		t.Errorf("got %s %q", r.Verdict, r.Stdout)
	}
}

// TestTypedAhead: what a command did not read of what was typed to it is no part
// of the next one's frame.
func TestTypedAhead(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		asks := make(chan struct{}, 1)
		go func() {
			<-asks
			s.Write([]byte("one\nrest"))
		}()
		r := runCommand(t, s, session.Command{Text: "echo ready; read a; echo $a", TTY: true, Output: func(_ session.Stream, b []byte) {
			if bytes.Contains(b, []byte("ready")) {
				asks <- struct{}{}
			}
		}})
		if !strings.Contains(string(r.Stdout), "one") {
			t.Fatalf("got %q", r.Stdout)
		}
		for range 2 {
			r := runCommand(t, s, session.Command{Text: "echo hi; (exit 3)", Timeout: 10 * time.Second})
			if string(r.Stdout) != "hi\n" || r.ExitCode != 3 { // the terminal has what the shell says of the rest
				t.Errorf("got %s %d %q", r.Verdict, r.ExitCode, r.Stdout)
			}
		}
	})
}

// TestReaderPauses: nothing is lost of what a shell wrote that has ended since.
func TestReaderPauses(t *testing.T) {
	t.Parallel()
	s := open(t, session.Config{Shell: "bash"})
	var paused atomic.Bool
	total := 0
	r, err := s.Run(t.Context(), session.Command{Text: "seq 1 40000; exit 3", Output: func(from session.Stream, b []byte) {
		if from != session.Stdout {
			return
		}
		if total += len(b); !paused.Swap(true) {
			time.Sleep(6 * time.Second) // longer than the session waits for a link
		}
	}})
	const bytes = 228894 // of seq 1 40000
	if err != nil || r.Verdict != session.Exited || r.ExitCode != 3 || r.StdoutBytes != bytes || total != bytes {
		t.Errorf("got %s %d, %d bytes, %d given, %v, want exited 3 with %d", r.Verdict, r.ExitCode, r.StdoutBytes, total, err, bytes)
	}
}

// TestReaderPausesAtTheTerminal: nothing is lost of a command whose end overtakes
// what it wrote to the terminal.
func TestReaderPausesAtTheTerminal(t *testing.T) {
	t.Parallel()
	s := open(t, session.Config{Shell: "bash"})
	var paused atomic.Bool
	r, err := s.Run(t.Context(), session.Command{Text: "seq 1 1000", TTY: true, Output: func(session.Stream, []byte) {
		if !paused.Swap(true) {
			time.Sleep(4 * time.Second) // longer than the session waits for the prompt
		}
	}})
	const bytes = 3893 // of seq 1 1000
	if err != nil || r.Verdict != session.Exited || r.ExitCode != 0 || r.StdoutBytes != bytes {
		t.Errorf("got %s %d, %d bytes, %v, want exited 0 with %d", r.Verdict, r.ExitCode, r.StdoutBytes, err, bytes)
	}
	want(t, run(t, s, "echo on"), 0, "on\n", "")
}

// TestReaderStops: a caller who never takes the output keeps no deadline from
// being met.
func TestReaderStops(t *testing.T) {
	t.Parallel()
	s := open(t, session.Config{Shell: "bash"})
	goesOn := make(chan struct{})
	defer close(goesOn)
	begun := time.Now()
	r, err := s.Run(t.Context(), session.Command{Text: "yes", Timeout: time.Second, Output: func(session.Stream, []byte) { <-goesOn }})
	if took := time.Since(begun); r.Verdict != session.TimedOut || !errors.Is(err, context.DeadlineExceeded) || !r.Truncated || r.Ended || sshdtest.Over(t, took, 9*time.Second) {
		t.Errorf("after %v: %s, truncated %v, ended %v, %v, want timed_out and truncated", took, r.Verdict, r.Truncated, r.Ended, err)
	}
	want(t, run(t, s, "echo on"), 0, "on\n", "")
}

// TestNobodyReadsTheTerminal: a writer that waits for room on the terminal keeps
// no deadline from being met.
func TestNobodyReadsTheTerminal(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		written := make(chan struct{})
		begun := time.Now()
		r, err := s.Run(t.Context(), session.Command{Text: "sleep 1000", TTY: true, Timeout: 500 * time.Millisecond, Started: func() {
			go func() {
				defer close(written)
				s.Write(bytes.Repeat([]byte("true\n"), 20_000))
			}()
		}})
		if took := time.Since(begun); r.Verdict != session.TimedOut || sshdtest.Over(t, took, 10*time.Second) {
			t.Errorf("after %v: %s, %v", took, r.Verdict, err)
		}
		s.Close()
		<-written
	})
}

// TestPlusLines: what looks like a trace is the command's, where nothing traces.
func TestPlusLines(t *testing.T) {
	s := open(t, session.Config{Shell: "bash"})
	run(t, s, "echo curl --verbose >/dev/null; : DEBUG=1")
	want(t, runCommand(t, s, session.Command{Text: `printf '+\n+ \n+:\n'`, TTY: true}), 0, "+\n+ \n+:\n", "")
}

// TestNewlinesAfterAnInterrupt are the program's that handled it.
func TestNewlinesAfterAnInterrupt(t *testing.T) {
	s := open(t, session.Config{Shell: "bash"})
	ready := make(chan struct{}, 1)
	go func() {
		<-ready
		s.Interrupt(session.Int)
	}()
	r, _ := s.Run(t.Context(), session.Command{
		Text: `sh -c 'trap x=1 INT; echo ready; while [ -z "$x" ]; do sleep 0.05; done; for i in 1 2 3; do echo; sleep 0.2; done; echo end'`, TTY: true,
		Output: func(_ session.Stream, b []byte) {
			if bytes.Contains(b, []byte("ready")) {
				ready <- struct{}{}
			}
		},
	})
	if !strings.HasSuffix(string(r.Stdout), "\n\n\nend\n") {
		t.Errorf("got %q, want three empty lines before the end", r.Stdout)
	}
}

// TestLineEditingIsSwitchedOff: a shell whose commands come from a program needs none, and
// ksh93, which takes the name of an editor for a wish to have it, can die of it.
func TestLineEditingIsSwitchedOff(t *testing.T) {
	t.Parallel()
	for _, shell := range shells {
		for _, text := range []string{"export EDITOR=vim", "VISUAL=vi", "set -o vi", "set -o emacs"} {
			t.Run(shell+" "+text, func(t *testing.T) {
				t.Parallel()
				s := open(t, session.Config{Shell: shell})
				for range 2 {
					if r := run(t, s, text); r.Ended {
						t.Fatalf("%+v", r)
					}
					want(t, run(t, s, "echo a\tb; (exit 3)"), 3, "a b\n", "")
					want(t, runCommand(t, s, session.Command{Text: "echo $V; pwd", Env: map[string]string{"V": "v"}, Cwd: "/usr"}), 0, "v\n/usr\n", "")
				}
			})
		}
	}
	s := open(t, session.Config{Shell: "ksh", Env: map[string]string{"EDITOR": "vim"}})
	want(t, run(t, s, "echo $EDITOR"), 0, "vim\n", "")
}

// TestShellWithoutInput: a shell whose input a command has taken away leaves behind it. What
// comes next is not run, and nothing else is said of it.
func TestShellWithoutInput(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"exec </dev/null", "exec <&-"} {
		t.Run(text, func(t *testing.T) {
			eachShell(t, func(t *testing.T, s *session.Session) {
				r := runCommand(t, s, session.Command{Text: text, TTY: true})
				if r.Verdict != session.Exited || r.ExitCode != 0 || !r.Ended {
					t.Errorf("got %+v, want its status and the session's end", r)
				}
				r, err := s.Run(t.Context(), session.Command{Text: "echo next"})
				if r.Verdict != session.NotStarted || !errors.Is(err, session.ErrClosed) {
					t.Errorf("behind it: %+v, %v", r, err)
				}
			})
		})
	}
}

// TestUnreadableCommand: yash leaves at characters that its locale does not have.
func TestUnreadableCommand(t *testing.T) {
	t.Parallel()
	s := open(t, session.Config{Shell: "yash"})
	run(t, s, "export LC_ALL=C")
	r, err := s.Run(t.Context(), session.Command{Text: "echo ü"})
	if r.Verdict != session.Unknown || !r.Ended || !errors.Is(err, session.ErrLost) {
		t.Errorf("got %+v, %v, want an outcome that is unknown", r, err)
	}
}
