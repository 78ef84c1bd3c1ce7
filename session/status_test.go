package session_test

import (
	"errors"
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
				if err := os.WriteFile(file, []byte("return "+status+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
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
