package session_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/session"
)

func TestTraceIsOnStderr(t *testing.T) {
	test := func(t *testing.T, s *session.Session) {
		runCommand(t, s, session.Command{Text: "set -x"})
		for _, command := range []session.Command{
			{Text: "echo shown"},
			{Text: "echo shown", Env: map[string]string{"V": "v"}},
			{Text: "echo shown", Cwd: "/tmp"},
			{Text: "echo shown; cat", Stdin: strings.NewReader("in\n")},
			{Text: "echo shown; : " + strings.Repeat("long ", 1000)},
		} {
			// Texts that are not begun leave the trace on.
			runCommand(t, s, session.Command{Text: "(if"})
			if _, err := s.Run(t.Context(), session.Command{Text: ":", Cwd: "/nonexistent"}); err == nil {
				t.Error("a command ran in a directory that is missing")
			}
			r := runCommand(t, s, command)
			if !strings.Contains(string(r.Stderr), "echo shown") {
				t.Errorf("%.20q with %v in %q: stderr %.200q, want the trace of the text", command.Text, command.Env, command.Cwd, r.Stderr)
			}
			if strings.Contains(string(r.Stderr), "_gw") || strings.Contains(string(r.Stderr), "set +x") || r.Background {
				t.Errorf("%.20q with %v in %q: stderr %.200q, background %v, want nothing of the frame", command.Text, command.Env, command.Cwd, r.Stderr, r.Background)
			}
		}
		runCommand(t, s, session.Command{Text: "set +x"})
		if r := runCommand(t, s, session.Command{Text: "echo silent"}); len(r.Stderr) > 0 {
			t.Errorf("stderr %q behind set +x, want none", r.Stderr)
		}
	}
	eachShell(t, test)
}

// On the terminal the trace is between what a command says, and nothing of the frame is.
func TestTraceOnTheTerminal(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		if tracesRedirected(s) {
			return
		}
		run(t, s, "set -x")
		trace := regexp.MustCompile(`(?m)^\++[^ ]* (.*\n)`)
		for _, command := range []session.Command{
			{Text: "echo a; (exit 3)", TTY: true},
			{Text: "echo a; (exit 3)", TTY: true, Cwd: "/tmp"},
			{Text: "echo a; (exit 3)", TTY: true, Env: map[string]string{"V": "v"}},
		} {
			r := runCommand(t, s, command)
			said, traced := trace.ReplaceAllString(string(r.Stdout), ""), trace.FindAllStringSubmatch(string(r.Stdout), -1)
			if said != "a\n" || r.ExitCode != 3 || len(r.Stderr) > 0 {
				t.Errorf("in %q with %v: got %d %q, stderr %q, want 3 and a", command.Cwd, command.Env, r.ExitCode, r.Stdout, r.Stderr)
			}
			for _, line := range traced {
				if line[1] != "echo a\n" && line[1] != "exit 3\n" && line[1] != "V=v\n" {
					t.Errorf("in %q with %v: traced %q", command.Cwd, command.Env, line[1])
				}
			}
			if len(traced) < 2 {
				t.Errorf("in %q with %v: got %q, want a trace", command.Cwd, command.Env, r.Stdout)
			}
		}
	})
}

// tracesRedirected reports whether a shell shows a command, as an eval, where that has its
// stderr.
func tracesRedirected(s *session.Session) bool { return strings.HasSuffix(s.Shell(), "yash") }

// What a file sets, no text shows: the trace of the frame does, or its echo.
func TestTraceThatAFileBegins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, option := range []string{"x", "v", "vx"} {
		file := filepath.Join(dir, option)
		must(t, os.WriteFile(file, []byte("set -"+option+"\n"), 0o600))
		eachShell(t, func(t *testing.T, s *session.Session) {
			if tracesRedirected(s) {
				return
			}
			for _, merge := range []bool{false, true} {
				runCommand(t, s, session.Command{Text: ". " + file, Merge: merge})
				for range 2 {
					run(t, s, "echo a # tty") // a text that may write to the terminal is over when all that is written there is here
				}
				r := run(t, s, "echo shown")
				if err := string(r.Stderr); option != "v" && !strings.Contains(err, "echo shown") || strings.Contains(err, "_gw") || strings.Contains(err, "eval '") || option == "x" && len(r.Terminal) > 0 || r.Background {
					t.Errorf("set -%s, merged %v: stderr %q, terminal %q, background %v, want the trace of the text", option, merge, err, r.Terminal, r.Background)
				}
				run(t, s, "set +vx")
			}
		})
	}
}

// Who asks a shell that traces where it is, behind an interrupt, is not seen.
func TestTraceOfWhatIsInterrupted(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		if tracesRedirected(s) {
			return
		}
		run(t, s, "set -x")
		r, err := s.Run(t.Context(), session.Command{Text: "sleep 100", Timeout: 300 * time.Millisecond})
		if r.Verdict != session.TimedOut || bytes.Contains(r.Stderr, []byte("case")) {
			t.Errorf("got %s, stderr %q, %v, want timed_out and nothing of the frame", r.Verdict, r.Stderr, err)
		}
	})
}

// A shell that repeats what it reads, or traces what it runs, and a terminal
// that echoes show the engine's own words with the command's.
func TestFrameIsNotShown(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		for _, text := range []string{
			"set -v", "echo shown", "set +v",
			"set -x", "echo shown", "set +x",
			"set -vx", "echo shown\necho twice", "set +vx",
			"stty sane </dev/tty", "echo shown",
		} {
			for _, command := range []session.Command{{Text: text}, {Text: text, Cwd: "/tmp"}} {
				var mu sync.Mutex
				var live bytes.Buffer
				command.Output = func(from session.Stream, b []byte) {
					if from == session.Terminal {
						mu.Lock()
						defer mu.Unlock()
						live.Write(b)
					}
				}
				r := runCommand(t, s, command)
				mu.Lock()
				shown := live.String() + string(r.Terminal)
				mu.Unlock()
				if strings.Contains(shown, "_gw") || strings.Contains(shown, "PS2") || strings.Contains(shown, "/dev/null") {
					t.Errorf("%q in %q: the terminal shows %q", text, command.Cwd, shown)
				}
			}
		}
	})
}

func TestTracesStayTheCommands(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		for _, text := range []string{"set -x", "echo out", "set -v", "echo out", "trap 'echo D' DEBUG", "echo out"} {
			r, err := s.Run(t.Context(), session.Command{Text: text})
			if err != nil || r.ExitCode != 0 && !strings.HasPrefix(text, "trap") || strings.Contains(string(r.Stderr)+string(r.Stdout)+string(r.Terminal), "_gw") || strings.Contains(string(r.Stderr), "printf") {
				t.Errorf("%s: got %d %q %q %q, %v, want nothing of the frame", text, r.ExitCode, r.Stdout, r.Stderr, r.Terminal, err)
			}
		}
	})
}
