package session_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gateway/session"
)

// TestStatusIsThatOfAProgram: whatever a shell keeps in $?, a command's status is what that
// shell would exit with.
func TestStatusIsThatOfAProgram(t *testing.T) {
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			s := open(t, session.Config{Shell: shell})
			file := filepath.Join(t.TempDir(), "f")
			run(t, s, `f() { return "$1"; }`)
			for _, status := range []string{"0", "255", "256", "300", "404", "511", "-1", "-256", "2147483647", "-2147483648"} {
				must(t, os.WriteFile(file, []byte("return "+status+"\n"), 0o600))
				for _, text := range []string{"f() { return " + status + "; }; f", ". " + file, "f " + status} {
					// 256 is ksh93's word for an interrupt. An eval that ends with less
					// than 0 it says it has not found.
					if shell == "ksh" && (text == "f 256" || strings.Contains(status, "-") && !strings.HasPrefix(text, ".")) {
						continue
					}
					want := exitOf(t, shell, `f() { return "$1"; }; `+text)
					r, err := s.Run(t.Context(), session.Command{Text: text, Timeout: 10 * time.Second})
					if err != nil || r.ExitCode != want || len(r.Stdout) > 0 || len(r.Terminal) > 0 {
						t.Errorf("%s: got %s %d, stdout %q, terminal %q, %v; want %d", text, r.Verdict, r.ExitCode, r.Stdout, r.Terminal, err, want)
					}
				}
			}
			for signal, want := range map[string]int{"KILL": 137, "TERM": 143, "INT": 130} {
				if r := run(t, s, "sh -c 'kill -"+signal+" $$'"); r.ExitCode != want {
					t.Errorf("killed by %s: got %s %d, want %d", signal, r.Verdict, r.ExitCode, want)
				}
			}
		})
	}
}

// exitOf returns the status that a shell exits with which runs a text.
func exitOf(t *testing.T, shell, text string) int {
	t.Helper()
	words := append(strings.Fields(shell), "-c", text)
	err := exec.CommandContext(t.Context(), words[0], words[1:]...).Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	} else if err != nil {
		return exit.ExitCode()
	}
	return 0
}

// TestLastStatus: a text finds in $? what the command before it has left, however it
// travels and that one ended, and an exit without a number hands that on.
func TestLastStatus(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		want(t, run(t, s, "echo $?"), 0, "0\n", "")
		for name, command := range map[string]session.Command{
			"plain":            {Text: "echo $?"},
			"in braces":        {Text: `x=${?}; echo "$x"`},
			"a directory":      {Text: "echo $?", Cwd: "/"},
			"a variable":       {Text: `echo $?$a`, Env: map[string]string{"a": ""}},
			"both in one":      {Text: "echo $?", Merge: true},
			"too long to type": {Text: "echo $? # " + strings.Repeat("x", 5000)},
			"lines":            {Text: "r=$?\necho $r"},
			"stdin":            {Text: "echo $?; read x", Stdin: strings.NewReader("x\n")},
		} {
			if r := run(t, s, "(exit 7)"); r.ExitCode != 7 {
				t.Fatalf("(exit 7) = %+v", r)
			}
			if zsh := filepath.Base(s.Shell()) == "zsh"; zsh && command.Env != nil {
				continue // an export stands in front of the text
			}
			if r := runCommand(t, s, command); string(r.Stdout) != "7\n" || r.ExitCode != 0 || len(r.Stderr)+len(r.Terminal) > 0 {
				t.Errorf("%s: got %d, stdout %q, stderr %q, terminal %q", name, r.ExitCode, r.Stdout, r.Stderr, r.Terminal)
			}
			want(t, run(t, s, "echo $?"), 0, "0\n", "")
		}
		run(t, s, "(exit 7)")
		if r := runCommand(t, s, session.Command{Text: "echo $?", TTY: true}); strings.TrimSpace(string(r.Stdout)) != "7" {
			t.Errorf("on the terminal: %q", r.Stdout)
		}
		if filepath.Base(s.Shell()) != "busybox" { // behind a trap on INT, its exit gives 130
			stopped, _ := s.Run(t.Context(), session.Command{Text: "sleep 1000", Timeout: 100 * time.Millisecond})
			want(t, run(t, s, "echo $?"), 0, fmt.Sprintf("%d\n", stopped.ExitCode), "")
		}
		run(t, s, "(exit 7)")
		run(t, s, "(exit $?)") // which has changed nothing
		if r, _ := s.Run(t.Context(), session.Command{Text: "exit"}); !r.Ended || r.ExitCode != 7 {
			t.Errorf("exit: %+v", r)
		}
	})
}

// TestStatusOfACommandWithATrap: an interrupt of an earlier one is no part of it. mksh
// has 0 then, whoever types.
func TestStatusOfACommandWithATrap(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		status := 7
		if strings.HasSuffix(t.Name(), "mksh") {
			status = 0
		}
		if r, err := s.Run(t.Context(), session.Command{Text: "sleep 60", Timeout: 100 * time.Millisecond}); r.Verdict != session.TimedOut {
			t.Fatalf("%+v, %v", r, err)
		}
		want(t, run(t, s, "trap 'echo got' USR1; sh -c 'kill -USR1 $PPID; exit 7'"), status, "got\n", "")
	})
}

// TestStatusThatCannotBeTold: where the shell can write no marks, the status of that is not
// the command's.
func TestStatusThatCannotBeTold(t *testing.T) {
	t.Parallel()
	s := open(t, session.Config{Shell: "zsh"})
	for _, text := range []string{"disable printf; (exit 3)", "(exit 3)"} {
		if r, err := s.Run(t.Context(), session.Command{Text: text, Timeout: 10 * time.Second}); r.Verdict != session.Unknown || r.ExitCode != -1 || !errors.Is(err, session.ErrLost) || r.Ended {
			t.Errorf("%s: %s %d, ended %v, %v", text, r.Verdict, r.ExitCode, r.Ended, err)
		}
	}
	want(t, run(t, s, "enable printf"), 0, "", "")
	want(t, run(t, s, "(exit 3)"), 3, "", "")
}

// TestEmulatedShell: in ksh's clothes, zsh takes ${!-} for another variable's name. What a
// job writes is not the next command's there either.
func TestEmulatedShell(t *testing.T) {
	t.Parallel()
	for _, as := range []string{"ksh", "sh"} {
		s := open(t, session.Config{Shell: "zsh"})
		want(t, run(t, s, "emulate "+as), 0, "", "")
		want(t, run(t, s, "echo out; (exit 3)"), 3, "out\n", "")
		want(t, runCommand(t, s, session.Command{Text: "echo $V; pwd", Env: map[string]string{"V": "v"}, Cwd: "/usr"}), 0, "v\n/usr\n", "")
		run(t, s, "(sleep 0.1; echo late) &")
		if r := run(t, s, "sleep 0.3; echo out"); string(r.Stdout) != "out\n" {
			t.Errorf("as %s: beside a job, %q", as, r.Stdout)
		}
	}
}

// TestSignalOfALongText: what a signal has ended has that for its status also where the text
// has several lines, or is too long to be typed.
func TestSignalOfALongText(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		const killed = `sh -c 'kill -9 $$'`
		for _, command := range []session.Command{
			{Text: ":\n" + killed},
			{Text: strings.Repeat("# long\n", 1000) + killed},
			{Text: ":\n" + killed, Env: map[string]string{"A": strings.Repeat("a", 5000)}},
			{Text: ":\n" + killed, Cwd: "/", Stdin: strings.NewReader("")},
			{Text: ":\n" + killed, TTY: true},
		} {
			if r := runCommand(t, s, command); r.ExitCode != 137 {
				t.Errorf("%.20q: %d, want 137", command.Text, r.ExitCode)
			}
		}
		want(t, run(t, s, "(exit 3)\necho $?; A=$(printf 'a\nb'); f() {\nreturn 4\n}\nf"), 4, "3\n", "")
		want(t, run(t, s, "echo $? \"$A\"\nreturn 5"), 5, "4 a\nb\n", "")
	})
}

// What a file or a profile sets, no text shows: a trap on DEBUG does not take a status away.
func TestStatusBehindATrapOfAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit")
	must(t, os.WriteFile(file, []byte("trap : DEBUG\n"), 0o600))
	eachShell(t, func(t *testing.T, s *session.Session) {
		if _, err := s.Run(t.Context(), session.Command{Text: ". " + file}); err != nil {
			t.Fatal(err)
		}
		for _, command := range []session.Command{
			{Text: "(exit 3)"},
			{Text: "(exit 3)", Cwd: "/"},
			{Text: "(exit 3)", TTY: true},
			{Text: "(exit 3)", Stdin: strings.NewReader("")},
			{Text: "# " + strings.Repeat("long ", 1000) + "\n(exit 3)"},
		} {
			if r := runCommand(t, s, command); r.ExitCode != 3 {
				t.Errorf("%.10q in %q: got %d, want 3", command.Text, command.Cwd, r.ExitCode)
			}
		}
	})
}
