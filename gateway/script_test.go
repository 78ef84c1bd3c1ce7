package gateway_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gateway/gateway"
	"gateway/session"
)

func TestScript(t *testing.T) {
	tests := []struct {
		name    string
		text    string
		command gateway.Command
		want    gateway.Result
		code    string
	}{
		{
			name: "one shell", text: "#!/bin/sh\nx=1\ncd /\nf() {\n  echo $x $PWD\n}\nf",
			want: gateway.Result{Result: session.Result{Verdict: session.Exited, Stdout: []byte("1 /\n")}},
		},
		{
			name: "the first that fails ends it", text: "echo a\nif true\nthen\n  (exit 3)\nfi\necho b\n",
			want: gateway.Result{Line: 2, Result: session.Result{Verdict: session.Exited, ExitCode: 3, Stdout: []byte("a\n")}},
		},
		{
			name: "the only one fails", text: "\n\nfalse",
			want: gateway.Result{Line: 3, Result: session.Result{Verdict: session.Exited, ExitCode: 1}},
		},
		{
			name: "exit", text: "echo a\nexit 0\necho b\n",
			want: gateway.Result{Result: session.Result{Verdict: session.Exited, Stdout: []byte("a\n")}},
		},
		{
			name: "exit 4", text: "echo a\nexit 4\necho b\n",
			want: gateway.Result{Line: 2, Result: session.Result{Verdict: session.Exited, ExitCode: 4, Stdout: []byte("a\n")}},
		},
		{
			name: "the timeout is for all", text: "sleep 0.3\necho a\nsleep 60\necho b", command: gateway.Command{Timeout: 800 * time.Millisecond},
			want: gateway.Result{Line: 3, Result: session.Result{Verdict: session.TimedOut, Stdout: []byte("a\n")}}, code: "cmd.timeout",
		},
		{
			name: "directory and environment", text: "cd ..\nY=2\necho $X$Y $PWD", command: gateway.Command{Cwd: "/usr/bin", Env: map[string]string{"X": "1"}},
			want: gateway.Result{Result: session.Result{Verdict: session.Exited, Stdout: []byte("12 /usr\n")}},
		},
		{
			name: "streams", text: "echo a\necho b >&2\necho c\n",
			want: gateway.Result{Result: session.Result{Verdict: session.Exited, Stdout: []byte("a\nc\n"), Stderr: []byte("b\n")}},
		},
		{
			name: "the shell is killed", text: "echo a\nkill -9 $$\necho b",
			want: gateway.Result{Line: 2, Result: session.Result{Verdict: session.Signaled, ExitCode: 137, Stdout: []byte("a\n")}},
		},
		{
			name: "no script", text: "echo a\nif b\n",
			want: gateway.Result{Result: session.Result{Verdict: session.Exited, ExitCode: 2, Stdout: []byte("a\n")}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := gateway.New(gateway.Config{})
			defer g.Close()
			c := test.command
			c.Text, c.Script, c.Session.Shell = test.text, true, "sh"
			r := g.Exec(t.Context(), "localhost", c)
			want := test.want
			if r.Verdict != want.Verdict || r.ExitCode != want.ExitCode && want.Verdict != session.TimedOut || r.Line != want.Line || gateway.Code(r.Err) != test.code {
				t.Errorf("got %s, status %d, line %d, %v; want %s, status %d, line %d, %s", r.Verdict, r.ExitCode, r.Line, r.Err, want.Verdict, want.ExitCode, want.Line, test.code)
			}
			if string(r.Stdout) != string(want.Stdout) || want.ExitCode != 2 && string(r.Stderr) != string(want.Stderr) {
				t.Errorf("got %q, %q, want %q, %q", r.Stdout, r.Stderr, want.Stdout, want.Stderr)
			}
			if r.Command != test.text || r.StdoutBytes != int64(len(r.Stdout)) || r.Truncated {
				t.Errorf("command %q, %d bytes, truncated %v", r.Command, r.StdoutBytes, r.Truncated)
			}
			if code := gateway.Code(r.Err); code == "cmd.timeout" && !strings.Contains(r.Err.Error(), "timeout of 800ms") {
				t.Errorf("error %q does not name the timeout", r.Err)
			}
		})
	}
}

func TestScriptKeepsHeadAndTail(t *testing.T) {
	dir := t.TempDir()
	g := gateway.New(gateway.Config{SpoolDir: dir})
	defer g.Close()
	r := g.Exec(t.Context(), "localhost", gateway.Command{Script: true, Spool: true, Session: gateway.Options{Shell: "sh"}, Text: "echo first\nseq 1 200000\nseq 1 200000\necho last\n"})
	if r.Err != nil || !r.Truncated || len(r.Stdout) != 1<<20 || r.StdoutBytes != 2*1288895+11 {
		t.Fatalf("%v: kept %d of %d bytes", r.Err, len(r.Stdout), r.StdoutBytes)
	}
	if out := string(r.Stdout); !strings.HasPrefix(out, "first\n1\n") || !strings.HasSuffix(out, "\n200000\nlast\n") {
		t.Errorf("kept %.20q…%q", out, out[len(out)-20:])
	}
	whole := readSpool(t, r.Spool)
	if int64(len(whole)) != r.StdoutBytes || !strings.HasPrefix(whole, "first\n1\n") || !strings.HasSuffix(whole, "\nlast\n") {
		t.Errorf("the spool has %d of %d bytes", len(whole), r.StdoutBytes)
	}
}

// A cut goes through no character, which would make base64 of the stream.
func TestScriptIsCutBetweenCharacters(t *testing.T) {
	g := gateway.New(gateway.Config{})
	defer g.Close()
	for n := range 12 {
		r := g.Exec(t.Context(), "localhost", gateway.Command{Script: true, Limit: 1000, Session: gateway.Options{Shell: "sh"}, Text: fmt.Sprintf("printf a\nyes ö | head -n %d | tr -d '\\n'\nprintf b", 494+n*n*n)})
		whole := "a" + strings.Repeat("ö", 494+n*n*n) + "b"
		want := whole
		if len(whole) > 1000 {
			want = "a" + strings.Repeat("ö", 498) + "b"
		}
		if r.Err != nil || string(r.Stdout) != want || r.StdoutBytes != int64(len(whole)) || r.Truncated != (len(whole) > 1000) {
			t.Errorf("%v: kept %d of %d bytes, truncated %v, want %d: %.10q…", r.Err, len(r.Stdout), r.StdoutBytes, r.Truncated, len(want), r.Stdout)
		}
	}
	r := g.Exec(t.Context(), "localhost", gateway.Command{Script: true, Limit: 1000, Session: gateway.Options{Shell: "sh"}, Text: "printf a\nyes x | head -n 3000 | tr 'x\\n' '\\251\\251'\nprintf b"})
	if want := "a" + strings.Repeat("\xa9", 998) + "b"; r.Err != nil || string(r.Stdout) != want {
		t.Errorf("%v: of bytes that are no text %d are kept, want all 1000", r.Err, len(r.Stdout))
	}
}

// Between its statements, too, an interrupt or a deadline ends a script that has
// begun.
func TestScriptInterrupted(t *testing.T) {
	g := gateway.New(gateway.Config{})
	defer g.Close()
	for i := range 20 { // often enough it is while no statement runs
		cause := &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}
		cancelled, cancel := context.WithCancelCause(t.Context())
		ctx, verdict, code := cancelled, session.Interrupted, "cmd.interrupted"
		if i%2 == 0 {
			ctx, verdict, code = late{cancelled}, session.TimedOut, "cmd.timeout"
		}
		r := g.Exec(ctx, "localhost", gateway.Command{
			Script: true, Session: gateway.Options{Shell: "sh"}, Text: strings.Repeat("echo a\n", 1000),
			Output: func(session.Stream, []byte) { cancel(cause) },
		})
		if r.Verdict != verdict || r.Line == 0 || len(r.Stdout) == 0 || gateway.Code(r.Err) != code {
			t.Errorf("got %s on line %d, %q, %v, want %s with what came before", r.Verdict, r.Line, r.Stdout, r.Err, verdict)
		}
	}
}

// late is a context whose end is a deadline.
type late struct{ context.Context }

func (l late) Err() error {
	if l.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// The end of the caller's time is not that of the script's timeout.
func TestScriptDeadline(t *testing.T) {
	g := gateway.New(gateway.Config{})
	defer g.Close()
	s, err := g.Open(t.Context(), "localhost", gateway.Options{Shell: "sh"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	r := s.RunScript(ctx, gateway.Command{Text: "true\nsleep 60\n"})
	if r.Verdict != session.TimedOut || gateway.Code(r.Err) != "cmd.timeout" || strings.Contains(r.Err.Error(), "timeout of") {
		t.Errorf("got %s, %v, want timed_out without a timeout", r.Verdict, r.Err)
	}
}

// What answers a statement's prompt sees all of it.
func TestScriptPrompt(t *testing.T) {
	g := gateway.New(gateway.Config{})
	defer g.Close()
	r := g.Exec(t.Context(), "localhost", gateway.Command{
		Script: true, Session: gateway.Options{Shell: "sh"}, Text: "true\n{ printf 'Go on? '; read a; } </dev/tty >/dev/tty; echo $a\n",
		Answer: func(_ context.Context, p session.Prompt, _ bool) (string, error) {
			return "<" + p.Text + ">", nil
		},
	})
	if string(r.Stdout) != "<Go on? >\n" || string(r.Terminal) != "Go on? " {
		t.Errorf("got %q, terminal %q, %v, want the prompt", r.Stdout, r.Terminal, r.Err)
	}
}

// Each statement is a command of its own: the same prompt is asked again only
// where the answer was refused.
func TestScriptPromptAgain(t *testing.T) {
	g := gateway.New(gateway.Config{})
	defer g.Close()
	const ask = "{ printf 'Go on? '; read a; } </dev/tty >/dev/tty; echo $a"
	r := g.Exec(t.Context(), "localhost", gateway.Command{
		Script: true, Session: gateway.Options{Shell: "sh"}, Text: ask + "\n{\n" + ask + "; " + ask + "\n}\n",
		Answer: func(_ context.Context, _ session.Prompt, again bool) (string, error) { return fmt.Sprint(again), nil },
	})
	if string(r.Stdout) != "false\nfalse\ntrue\n" {
		t.Errorf("asked again: %q, %v", r.Stdout, r.Err)
	}
}

// What nobody took in time is missing, also where all that came was kept.
func TestScriptCut(t *testing.T) {
	t.Parallel()
	g := gateway.New(gateway.Config{})
	defer g.Close()
	s, err := g.Open(t.Context(), "localhost", gateway.Options{Shell: "bash"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	goesOn := make(chan struct{})
	defer close(goesOn)
	r := s.RunScript(t.Context(), gateway.Command{
		Text: "true\nyes\n", Timeout: time.Second, Output: func(session.Stream, []byte) { <-goesOn },
	})
	if r.Verdict != session.TimedOut || len(r.Stdout) == 0 || r.StdoutBytes != int64(len(r.Stdout)) || !r.Truncated || !r.Cut {
		t.Errorf("got %s, %d of %d bytes, truncated %v, cut %v, %v, want timed_out and truncated", r.Verdict, len(r.Stdout), r.StdoutBytes, r.Truncated, r.Cut, r.Err)
	}
}

// A timeout ends a script whose output nobody takes, also where that is what a job has
// said between two statements.
func TestScriptThatNobodyReads(t *testing.T) {
	t.Parallel()
	g := gateway.New(gateway.Config{})
	defer g.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // longer than the script
	defer cancel()
	var between atomic.Bool
	r := g.Exec(t.Context(), "localhost", gateway.Command{
		Script: true, Session: gateway.Options{Shell: "dash"}, Timeout: 500 * time.Millisecond,
		Text: "while kill -0 $$; do echo job; done &\n" + strings.Repeat(":\n", 5000),
		Output: func(session.Stream, []byte) {
			if strings.Contains(string(debug.Stack()), ").inherit.") { // else a statement runs
				between.Store(true)
				<-ctx.Done()
			}
		},
	})
	if !between.Load() || r.Verdict != session.TimedOut || gateway.Code(r.Err) != "cmd.timeout" || !strings.Contains(r.Err.Error(), "timeout of 500ms") {
		t.Errorf("got %s on line %d, %v, between two: %v; want timed_out", r.Verdict, r.Line, r.Err, between.Load())
	}
}

func readSpool(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestScriptIsLeft: a script whose session ends behind one of its statements has not
// run to its end, whatever that statement's status was.
func TestScriptIsLeft(t *testing.T) {
	for range 5 {
		g := gateway.New(gateway.Config{})
		begun := false
		r := g.Exec(t.Context(), "localhost", gateway.Command{Text: "echo a\necho b\necho c\n", Script: true, Session: gateway.Options{Shell: "sh"}, Output: func(_ session.Stream, b []byte) {
			if !begun && strings.Contains(string(b), "b") {
				begun = true
				closed := make(chan struct{})
				go func() { defer close(closed); g.Close() }()
				select {
				case <-closed:
				case <-time.After(200 * time.Millisecond):
				}
			}
		}})
		behind := r.Verdict == session.Unknown && r.ExitCode == -1 && r.Line == 3 && gateway.Code(r.Err) == "link.lost"
		within := r.Verdict == session.Unknown && r.ExitCode == -1 && r.Line == 2 && gateway.Code(r.Err) == "link.lost" // the shell had not said yet that it was over
		if !behind && !within {
			t.Errorf("got %s %d %q, line %d, %v, want unknown before line 3", r.Verdict, r.ExitCode, r.Stdout, r.Line, r.Err)
		}
		g.Close()
	}
}

// What a statement leaves running writes into those that follow, also in the moment
// between two of them, and into nothing behind the script.
func TestScriptKeepsWhatItsJobsSay(t *testing.T) {
	t.Parallel()
	notice := regexp.MustCompile(`(?m)^\[\d+\].*\n`) // yash waits aloud
	for _, shell := range []string{"bash", "dash", "zsh", "ksh", "mksh", "yash", "busybox ash"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			g := gateway.New(gateway.Config{})
			defer g.Close()
			s, err := g.Open(t.Context(), "localhost", gateway.Options{Shell: shell})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			r := s.RunScript(t.Context(), gateway.Command{Text: "T=" + t.TempDir() + "\n(echo first; >$T/a; until [ -e $T/b ]; do sleep 0.05; done; echo second; echo third >&2) & p=$!\n" +
				"until [ -e $T/a ]; do sleep 0.05; done\necho middle\n>$T/b; wait $p || :\n" + // one that is over may be forgotten
				"seq 1 50000 &\nwait\necho end\n(sleep 0.5; echo late) &\ntrue\n"})
			got := notice.ReplaceAllString(string(r.Stdout), "")
			if want := "first\nmiddle\nsecond\n" + numbers(50000) + "end\n"; r.Err != nil || got != want || !strings.Contains(string(r.Stderr), "third\n") {
				t.Errorf("got %s, %.60q… of %d bytes, stderr %q, %v; want %.60q… of %d", r.Verdict, got, len(got), r.Stderr, r.Err, want, len(want))
			}
			if r := s.Run(t.Context(), gateway.Command{Text: "sleep 1; echo mine"}); string(r.Stdout) != "mine\n" {
				t.Errorf("behind the script: got %q, %v", r.Stdout, r.Err)
			}
		})
	}
}

func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i+1)
	}
	return b.String()
}

// A prompt is what was said last, whichever statement did.
func TestScriptAsksInTwoStatements(t *testing.T) {
	t.Parallel()
	g := gateway.New(gateway.Config{})
	defer g.Close()
	asked := []string{}
	r := g.Exec(t.Context(), "localhost", gateway.Command{
		Script: true, Session: gateway.Options{Shell: "bash"}, Text: "printf 'Name? '\nread n </dev/tty\nread m </dev/tty\necho $n $m\n",
		Answer: func(_ context.Context, p session.Prompt, _ bool) (string, error) {
			asked = append(asked, p.Text)
			return "Bob", nil
		},
	})
	if want := []string{"Name? ", ""}; string(r.Stdout) != "Name? Bob Bob\n" || !slices.Equal(asked, want) {
		t.Errorf("got %q, asked %q, %v; want %q", r.Stdout, asked, r.Err, want)
	}
}
