package session_test

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gateway/session"
)

// TestOrphansOfAnAsker: an orphan may get a parent that has asked for orphans
// (PR_SET_CHILD_SUBREAPER(2const)), as systemd --user does, and which is older than the
// session. What a command has left behind is still the command's.
func TestOrphansOfAnAsker(t *testing.T) {
	const setChildSubreaper = 36
	ask := func(whether uintptr) {
		if _, _, err := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, whether, 0); err != 0 {
			t.Fatal(err)
		}
	}
	ask(1)
	defer ask(0)
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			s := open(t, session.Config{Shell: shell})
			r, _ := s.Run(t.Context(), session.Command{Text: `sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!'; sleep 1000`, Timeout: 300 * time.Millisecond})
			orphan, err := strconv.Atoi(strings.TrimSpace(string(r.Stdout)))
			if err != nil || r.Verdict != session.TimedOut {
				t.Fatalf("%s %q, %v", r.Verdict, r.Stdout, err)
			}
			if r := run(t, s, "cut -d' ' -f4 /proc/"+strconv.Itoa(orphan)+"/stat 2>/dev/null"); string(r.Stdout) == "1\n" {
				t.Errorf("nobody has the orphan")
			}
			var status syscall.WaitStatus
			eventually(t, "the orphan has ended", func() bool {
				pid, err := syscall.Wait4(orphan, &status, syscall.WNOHANG, nil)
				return pid == orphan || err != nil
			})
			if !status.Signaled() {
				t.Errorf("the orphan: %v", status)
				_ = syscall.Kill(orphan, syscall.SIGKILL)
			}
		})
	}
}

// init runs on the first thread. Told so, the tests are a program whose terminal another
// one reads, as a JVM's does.
func init() {
	if os.Getenv("GWTEST_READS") == "" {
		return
	}
	runtime.LockOSThread()
	terminal, err := syscall.Open("/dev/tty", syscall.O_RDWR, 0)
	if err != nil {
		os.Exit(1)
	}
	go func() {
		_, _ = syscall.Write(terminal, []byte("name? "))
		b := make([]byte, 100)
		n, _ := syscall.Read(terminal, b)
		_, _ = os.Stdout.Write(b[:n])
		os.Exit(0)
	}()
	select {}
}

func TestAnotherThreadReadsTheTerminal(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	eachShell(t, func(t *testing.T, s *session.Session) {
		asked := false
		r, err := s.Run(t.Context(), session.Command{
			Text: "GWTEST_READS=1 " + self, Timeout: 10 * time.Second,
			Answer: func(_ context.Context, p session.Prompt) (string, error) {
				asked = asked || p.Text == "name? "
				return "me", nil
			},
		})
		if !asked || string(r.Stdout) != "me\n" {
			t.Errorf("asked %v, %s %q, %v", asked, r.Verdict, r.Stdout, err)
		}
	})
}
