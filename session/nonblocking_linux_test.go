package session_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/internal/sshdtest"
	"gateway/session"
)

// nonblocking is a program that leaves a descriptor of its shell's so.
func nonblocking(t *testing.T, fd string) string {
	t.Helper()
	if _, err := exec.LookPath("perl"); err != nil {
		sshdtest.Skip(t, "%v", err)
	}
	return `perl -MFcntl -e 'open my $f, "+<&=", ` + fd + `; fcntl($f, F_SETFL, fcntl($f, F_GETFL, 0) | O_NONBLOCK)'`
}

// TestTerminalThatDoesNotBlock: a program that does without waits may leave the shell's own
// input so, as one that is killed does.
func TestTerminalThatDoesNotBlock(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		for range 10 {
			r := runCommand(t, s, session.Command{Text: nonblocking(t, "0"), TTY: true})
			if r.Ended || len(r.Stdout) > 0 {
				t.Fatalf("got %+v", r)
			}
			want(t, run(t, s, "sleep 0.01; echo on"), 0, "on\n", "")
			if path.Base(s.Shell()) == "bash" { // opens nothing anew, and 5.2 crashes at one in a thousand interrupts here
				continue
			}
			// What reads commands from the terminal has it by the name that it came with.
			r, err := s.Run(t.Context(), session.Command{Text: "sleep 0.01", TTY: true, Timeout: 10 * time.Second, Started: func() { go s.Interrupt(session.Int) }})
			if r.Ended || r.Verdict == session.TimedOut {
				t.Fatalf("got %+v, %v", r, err)
			}
		}
	})
}

// TestStreamThatDoesNotBlock: what a program leaves so, and full, does not take the marks of
// its command's end.
func TestStreamThatDoesNotBlock(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		for _, fd := range []string{"1", "2", "1", "2"} {
			run(t, s, "echo on") // the first frames say all by themselves
			over := filepath.Join(t.TempDir(), "over")
			var full sync.Once
			r := runCommand(t, s, session.Command{
				Text: nonblocking(t, fd) + "; " + `perl -e 'open my $f, ">&=", ` + fd + `; while (defined syswrite $f, "x" x 65536) {}'; echo $$ >` + over + "; (exit 5)",
				Output: func(session.Stream, []byte) {
					full.Do(func() { eventually(t, "the shell sleeps", func() bool { return sleeps(over) }) })
				},
			})
			if r.Verdict != session.Exited || r.ExitCode != 5 || len(r.Terminal) > 0 || r.StdoutBytes+r.StderrBytes < 32<<10 { // a pipe has 16 pages, some of which may not be read to their end
				t.Errorf("descriptor %s: got %s %d, %d bytes, terminal %q", fd, r.Verdict, r.ExitCode, r.StdoutBytes+r.StderrBytes, r.Terminal)
			}
			want(t, run(t, s, "echo on"), 0, "on\n", "")
		}
	})
}

// sleeps reports whether the process that a file names does.
func sleeps(file string) bool {
	pid, _ := os.ReadFile(file)
	stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
	return err == nil && strings.Contains(string(stat), ") S ")
}
