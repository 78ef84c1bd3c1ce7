package session_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gateway/session"
)

// TestNoticesAreNoOutput ends a job, of which the shell then speaks when it
// pleases, but never on a later command's streams.
func TestNoticesAreNoOutput(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		long := " # " + strings.Repeat("x", 20_000)
		for _, next := range []session.Command{
			{Text: "echo on"},
			{Text: "echo on" + long},
			{Text: "echo on" + long, Env: map[string]string{"A": "b"}},
			{Text: "echo on" + long, Stdin: strings.NewReader("")},
			{Text: "echo on; echo" + long + "\n", Merge: true},
			{Text: "echo on; return"},
			{Text: "echo on; return" + long},
		} {
			dir := t.TempDir()
			run(t, s, "{ : >"+dir+"/done; } >/dev/null 2>&1 &")
			eventually(t, "the job is over", func() bool { _, err := os.Stat(dir + "/done"); return err == nil })
			r := runCommand(t, s, next)
			if !strings.HasPrefix(string(r.Stdout), "on\n") || len(r.Stderr) > 0 {
				t.Errorf("%.20q: got %.200q %q", next.Text, r.Stdout, r.Stderr)
			}
		}
	})
}

func TestBackgroundJobsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		r := run(t, s, "(sleep 1; echo LATE; sleep 0.3; echo LATER) & echo now")
		if string(r.Stdout) != "now\n" {
			t.Errorf("got %q, want %q at once", r.Stdout, "now\n")
		}
		for range 30 { // until both have been written
			r := run(t, s, "echo mine; sleep 0.05")
			if string(r.Stdout) != "mine\n" || r.Background {
				t.Fatalf("got %q background=%v, want only the command's own", r.Stdout, r.Background)
			}
		}
		// An older job survives the end of a later command.
		run(t, s, "sleep 1000 & J=$!")
		s.Run(t.Context(), session.Command{Text: "sleep 1000", Timeout: 100 * time.Millisecond})
		if r := run(t, s, "kill -0 $J && kill $J"); r.ExitCode != 0 {
			t.Errorf("the older job is gone: %q", r.Stderr)
		}
	})
}

// Each job keeps the streams of its command; the session turns to others, and
// the oldest channels go. Neither the shell nor a job may be hung up by that.
func TestManyBackgroundJobs(t *testing.T) {
	eachShell(t, func(t *testing.T, s *session.Session) {
		for i := range 6 {
			run(t, s, fmt.Sprintf("sleep 1000 & J%d=$!", i))
		}
		if r := run(t, s, "kill -0 $J0 $J1 $J2 $J3 $J4 $J5 && echo all"); string(r.Stdout) != "all\n" {
			t.Errorf("got %q %q, want all jobs alive", r.Stdout, r.Stderr)
		}
		// A child that has not begun its program yet ignores TERM, as an interactive
		// shell does.
		run(t, s, "kill -KILL $J0 $J1 $J2 $J3 $J4 $J5")
	})
}

// busybox ash takes the end of a job for the end of its input, and the fiftieth
// in a row for good.
func TestJobsThatEndBetweenCommands(t *testing.T) {
	t.Parallel()
	eachShell(t, func(t *testing.T, s *session.Session) {
		ended := filepath.Join(t.TempDir(), "ended")
		run(t, s, `for i in 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39; do `+
			`(sleep 0.$i; echo >>`+ended+`) & (sleep 0.${i}4; echo >>`+ended+`) & (sleep 0.${i}7; echo >>`+ended+`) & done 2>/dev/null`)
		eventually(t, "ninety jobs have ended", func() bool {
			lines, _ := os.ReadFile(ended)
			return len(lines) == 90
		})
		r := run(t, s, "echo alive >&2; (exit 3)")
		if r.ExitCode != 3 || string(r.Stderr) != "alive\n" || strings.Contains(string(r.Terminal), "exit") {
			t.Errorf("got %s %d, stderr %q, terminal %q", r.Verdict, r.ExitCode, r.Stderr, r.Terminal)
		}
	})
}

// It has other words for that where a job is stopped.
func TestJobsThatEndBesideAStoppedOne(t *testing.T) {
	s := open(t, session.Config{Shell: "busybox ash"})
	run(t, s, "sh -c 'kill -STOP $$'")
	for range 20 {
		run(t, s, "sleep 60 & J=$!")
		if r := run(t, s, "kill -KILL $J"); strings.Contains(string(r.Terminal), "stopped") {
			t.Fatalf("terminal %q, want nothing of the shell's", r.Terminal)
		}
	}
}

// TestNohupAsTheLastWord: who ends the session at once does not hang up what is about to
// see to it that this does not meet it. The job takes a while for that.
func TestNohupAsTheLastWord(t *testing.T) {
	t.Parallel()
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			s, _ := openIn(t, session.Config{Shell: shell})
			done := filepath.Join(t.TempDir(), "done")
			run(t, s, `{ i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done; exec nohup sh -c 'sleep 0.2; : >`+done+`'; } >/dev/null 2>&1 &`)
			s.Close()
			eventually(t, "the job has come to its end", func() bool { _, err := os.Stat(done); return err == nil })
		})
	}
}
