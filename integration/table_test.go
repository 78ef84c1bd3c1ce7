package integration

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"gateway/session"
	"gateway/transport"
)

// table is run on the shells of every machine, with the same outcome on all.
var table = []struct {
	name           string
	command        session.Command
	verdict        session.Verdict
	code           int
	stdout, stderr string
	cwd            string
	err            error
}{
	{name: "both streams", command: session.Command{Text: "echo out; echo err >&2; exit 3"}, code: 3, stdout: "out\n", stderr: "err\n"},
	{name: "directory", command: session.Command{Text: "cd /tmp && pwd"}, stdout: "/tmp\n", cwd: "/tmp"},
	{name: "death by signal", command: session.Command{Text: `printf "\000\001\377"; kill -9 $$`}, verdict: session.Signaled, code: 137, stdout: "\x00\x01\xff"},
	{name: "a child's death by signal", command: session.Command{Text: `dash -c 'sh -c "kill -9 \$\$"; echo $?' 2>/dev/null`}, stdout: "137\n"},
	{name: "timeout", command: session.Command{Text: "echo part; sleep 60", Timeout: 300 * time.Millisecond}, verdict: session.TimedOut, code: -2, stdout: "part\n", err: context.DeadlineExceeded},
	{name: "stdin", command: session.Command{Text: "wc -l | tr -d ' '", Stdin: strings.NewReader(lines(100_000))}, stdout: "100000\n"},
	{name: "no stdin", command: session.Command{Text: "cat; echo end"}, stdout: "end\n"},
	{name: "no terminal on the streams", command: session.Command{Text: "test -t 0 || test -t 1 || echo none"}, stdout: "none\n"},
	{name: "merged", command: session.Command{Text: "echo a; echo b >&2; echo c", Merge: true}, stdout: "a\nb\nc\n"},
	{name: "environment", command: session.Command{Text: `sh -c 'echo "$GREETING"'`, Env: map[string]string{"GREETING": "it's \"$HOME\"\nme"}}, stdout: "it's \"$HOME\"\nme\n"},
	{name: "large text", command: session.Command{Text: "echo " + strings.Repeat("x", 100_000) + " | wc -c | tr -d ' '"}, stdout: "100001\n"},
	{name: "large output", command: session.Command{Text: "seq 1 200000 | tail -n 100000; seq 1 10 >&2", Limit: 4 << 20}, stdout: tail(200_000, 100_000), stderr: lines(10)},
	{name: "syntax error", command: session.Command{Text: "echo 'abc"}, code: -2, stderr: "*"},
	{name: "pager and terminal type", command: session.Command{Text: "echo $TERM $PAGER $GIT_PAGER"}, stdout: "dumb cat cat\n"},
	{name: "missing directory", command: session.Command{Text: "echo ran", Cwd: "/nonexistent"}, verdict: session.NotStarted, code: -1, err: errAny},
}

var errAny = errors.New("any error")

func lines(n int) string { return tail(n, n) }

func tail(n, last int) string {
	var b []byte
	for i := n - last + 1; i <= n; i++ {
		b = append(strconv.AppendInt(b, int64(i), 10), '\n')
	}
	return string(b)
}

func TestSameOutcomeEverywhere(t *testing.T) {
	t.Parallel() // it waits, mostly
	runtime := t.TempDir()
	for _, machine := range machines(t, runtime) {
		t.Run(machine.name, func(t *testing.T) {
			tr := machine.open(t)
			sameOutcome(t, tr, machine.telling(shells), machine.tty)
		})
	}
	eventually(t, "no keeper's directory left", func() bool { return empty(runtime) })
}

// sameOutcome runs the table on a machine, whose account gets a terminal or not.
func sameOutcome(t *testing.T, tr transport.Transport, shells []string, tty bool) {
	t.Helper()
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			for _, test := range table {
				t.Run(test.name, func(t *testing.T) {
					s, err := session.Open(t.Context(), tr, session.Config{Shell: shell})
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close()
					if s.Terminal() != tty {
						t.Errorf("has a terminal: %v, want %v", s.Terminal(), tty)
					}
					if test.command.Stdin != nil {
						test.command.Stdin = strings.NewReader(lines(100_000))
					}
					r, err := s.Run(t.Context(), test.command)
					verdict := test.verdict
					if verdict == "" {
						verdict = session.Exited
					}
					if r.Verdict != verdict || test.code != -2 && r.ExitCode != test.code {
						t.Errorf("got %s %d, want %s %d (%v)", r.Verdict, r.ExitCode, verdict, test.code, err)
					}
					if string(r.Stdout) != test.stdout || test.stderr != "*" && string(r.Stderr) != test.stderr || len(r.Terminal) > 0 {
						t.Errorf("got stdout %.200q, stderr %.200q, terminal %.200q; want %.200q and %.200q", r.Stdout, r.Stderr, r.Terminal, test.stdout, test.stderr)
					}
					if test.cwd != "" && r.Cwd != test.cwd {
						t.Errorf("cwd = %q, want %q", r.Cwd, test.cwd)
					}
					if wrong := test.err == nil && err != nil || test.err != nil && err == nil || test.err != nil && test.err != errAny && !errors.Is(err, test.err); wrong {
						t.Errorf("error = %v, want %v", err, test.err)
					}
					if !r.Ended && r.Verdict != session.NotStarted {
						if r, err := s.Run(t.Context(), session.Command{Text: "echo alive"}); err != nil || string(r.Stdout) != "alive\n" {
							t.Errorf("the session is not usable afterwards: %q %q, %v", r.Stdout, r.Stderr, err)
						}
					}
				})
			}
		})
	}
}
